# In the image's root, after the packages are configured.
set -eu
install -d -o 1000 -g 1000 /conf /data /datalog /logs
