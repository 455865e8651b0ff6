//! Container images without a registry: built from the distribution's packages and imported into a node.
//!
//! A recipe is data. What it makes is kept in the cache under the digest of all that the recipe says, so a changed
//! recipe is built anew and an old one is not touched. Nothing here knows a cluster.

mod archive;
mod build;
mod recipes;

pub(crate) use archive::feed;
pub use recipes::{ALL, OPERATOR, PAUSE, POSTGRES_15, POSTGRES_17, RABBITMQ, ZOOKEEPER};

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::cache;

/// How one image is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    /// The names that pods may use for it, the first for messages too.
    pub names: &'static [&'static str],
    /// Its lower layer.
    pub base: Base,
    /// Java archives on top of that.
    pub jars: Option<Jars>,
    /// What lies on top of all.
    pub files: &'static [File],
    /// Entry point, environment and so on: the `config` object of the image, as JSON.
    pub settings: &'static str,
}

/// Where an image's lower layer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Packages of a Debian release, with what they need.
    Debian {
        /// Name of the release.
        suite: &'static str,
        /// Names of the packages.
        packages: &'static [&'static str],
        /// Shell script run in the image's root when only the essential packages are there.
        prepare: &'static str,
        /// Shell script run in the image's root at the end.
        finish: &'static str,
    },
    /// One static program.
    Program {
        /// Its place in the image.
        path: &'static str,
        /// Its source, in C.
        source: &'static str,
    },
}

/// Java archives from Maven's registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jars {
    /// Names them, in the form of a `pom.xml`: what is needed at run time, with all that it needs itself.
    pub pom: &'static str,
    /// Their folder in the image.
    pub folder: &'static str,
}

/// One file of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    /// Its place in the image.
    pub path: &'static str,
    /// Its contents.
    pub text: &'static str,
    /// Whether it is a program.
    pub executable: bool,
}

impl Recipe {
    /// The image's folder, if it is built.
    pub fn built(&self) -> Option<PathBuf> {
        self.place().ok().filter(|path| path.is_dir())
    }

    /// The image's folder, or what to do about its absence.
    ///
    /// # Errors
    /// It is not built.
    pub fn find(&self) -> Result<PathBuf> {
        self.built().with_context(|| {
            format!("image {} is not built: run `cargo xtask cluster build --node`", self.name())
        })
    }

    /// The image's folder, built if it is missing. A second process waits for the first one's build.
    ///
    /// # Errors
    /// A program is missing (mmdebstrap, tar, cc, mvn), or the packages cannot be fetched.
    pub fn ensure(&self) -> Result<PathBuf> {
        match self.built() {
            Some(path) => Ok(path),
            None => build::build(self).with_context(|| format!("build image {}", self.name())),
        }
    }

    /// The folder of this image with a program of this machine in `/usr/local/bin`, stripped; built if the recipe or the
    /// program changed. Its lower layers must be there: [`prepare`] makes them.
    ///
    /// # Errors
    /// The lower layers are not built, or `strip` or tar fail.
    pub fn with_program(&self, program: &Path) -> Result<PathBuf> {
        build::with_program(self, program)
            .with_context(|| format!("build image {} with {}", self.name(), program.display()))
    }

    /// The image's name.
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or("without a name")
    }

    fn place(&self) -> Result<PathBuf> {
        Ok(folder()?.join(format!("{}-{}", self.label(), self.digest())))
    }

    /// The image's name as part of a file's name.
    fn label(&self) -> String {
        self.name().replace(['/', ':'], "-")
    }

    /// Digest of all that the recipe says.
    pub(crate) fn digest(&self) -> String {
        let base = self.base.digest();
        let files = self.files.iter().flat_map(|file| {
            [file.path, file.text, if file.executable { "executable" } else { "" }]
        });
        let jars = self.jars.iter().flat_map(|jars| [jars.pom, jars.folder]);
        let own = [base.as_str(), self.settings, build::PACKING];
        let words = self.names.iter().copied().chain(own);
        short_digest(words.chain(jars).chain(files))
    }
}

impl Base {
    fn digest(&self) -> String {
        match *self {
            Self::Debian { suite, packages, prepare, finish } => {
                let words = [suite, prepare, finish].into_iter().chain(build::OPTIONS);
                short_digest(words.chain(packages.iter().copied()))
            }
            Self::Program { path, source } => short_digest([path, source]),
        }
    }
}

/// Builds the lower layers of the images that get a program of the machine later.
///
/// # Errors
/// As [`Recipe::ensure`].
pub fn prepare() -> Result<()> {
    build::prepare(&OPERATOR)
}

fn folder() -> Result<PathBuf> {
    Ok(cache::folder()?.join("images"))
}

pub(crate) fn short_digest<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let mut digest = Sha256::new();
    for word in words {
        digest.update(word);
        digest.update([0]);
    }
    digest.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_recipe_is_another_image() {
        let recipe = POSTGRES_15;
        let changed = [
            Recipe { names: &["postgres:15"], ..recipe },
            Recipe { settings: "{}", ..recipe },
            Recipe { files: &[], ..recipe },
            Recipe { jars: Some(Jars { pom: "", folder: "" }), ..recipe },
            Recipe { base: POSTGRES_17.base, ..recipe },
        ];
        for other in changed {
            assert_ne!(recipe.digest(), other.digest(), "{other:?}");
        }
    }

    #[test]
    fn every_recipe_has_its_own_names_and_settings_that_can_be_read() {
        let mut names: Vec<_> = ALL.iter().flat_map(|recipe| recipe.names).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.iter().map(|recipe| recipe.names.len()).sum::<usize>());
        for recipe in ALL {
            let settings: serde_json::Value =
                serde_json::from_str(recipe.settings).expect("settings are JSON");
            assert!(settings["Entrypoint"].is_array(), "{}", recipe.name());
        }
    }
}
