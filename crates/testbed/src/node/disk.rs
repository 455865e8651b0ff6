//! A volume with a size of its own: a file system in a file, mounted where the volume lies.
//!
//! The folder of the volumes is shared with the nodes (see `network`), so a mount that is made here is seen by
//! every kubelet, whatever node the volume was made for and however often that node comes and goes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::network::{output, run};

/// What a volume can grow to, in bytes. Its file takes no more of the disk than what is written.
const ROOM: u64 = 1 << 36;

/// Whether volumes get a file system of their size: where this machine has loop devices.
pub fn enforces_sizes() -> bool {
    Path::new("/dev/loop-control").exists()
}

/// Makes a volume, unless it is there.
pub(super) fn make(folder: &Path, size: &Quantity) -> Result<()> {
    fs::create_dir_all(folder).context("make a volume's folder")?;
    if !enforces_sizes() {
        return Ok(());
    }
    if !is_mounted(folder)? {
        let (file, place) = (file(folder), folder.display().to_string());
        let path = file.display().to_string();
        File::create(&file)?.set_len(ROOM).context("give a volume its file")?;
        // Without a journal, for nothing here outlives the machine. Nothing is kept for root: a full volume is full.
        let options = ["-q", "-F", "-m", "0", "-i", "131072", "-O", "^has_journal", &path];
        run("mkfs.ext4", &options)?;
        run("mount", &["-o", "loop,noatime,noinit_itable", &path, &place])?;
    }
    limit(folder, bytes(size)?)
}

/// Gives a volume more room, under whoever uses it.
pub(super) fn grow(folder: &Path, size: &Quantity) -> Result<()> {
    if is_mounted(folder)? { limit(folder, bytes(size)?) } else { Ok(()) }
}

/// Keeps all of the file system but `size` bytes from everybody. A file system that grows itself would ask for
/// CAP_SYS_RESOURCE, which not every machine gives.
fn limit(folder: &Path, size: u64) -> Result<()> {
    let path = file(folder).display().to_string();
    let device = output("losetup", &["--associated", &path, "--noheadings", "--output", "NAME"])?;
    let device = device.trim().rsplit('/').next().unwrap_or_default();
    let told = output("stat", &["-f", "-c", "%b %S", &folder.display().to_string()])?;
    let (blocks, block) = told.trim().split_once(' ').context("blocks and their size")?;
    let (blocks, block): (u64, u64) = (blocks.parse()?, block.parse()?);
    let kept = blocks.checked_sub(size.div_ceil(block));
    let kept = kept.with_context(|| format!("a volume has at most {ROOM} bytes here"))?;
    let setting = format!("/sys/fs/ext4/{device}/reserved_clusters");
    fs::write(&setting, kept.to_string()).with_context(|| format!("write {setting}"))
}

/// Removes a volume with all that it holds.
pub(super) fn remove(folder: &Path) -> Result<()> {
    if is_mounted(folder)? {
        run("umount", &[&folder.display().to_string()])?;
    }
    for outcome in [fs::remove_file(file(folder)), fs::remove_dir_all(folder)] {
        match outcome {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).context("remove a volume");
            }
            _ => {}
        }
    }
    Ok(())
}

/// Where the file system lies: beside the folder that it is mounted at.
fn file(folder: &Path) -> PathBuf {
    folder.with_extension("disk")
}

fn is_mounted(folder: &Path) -> Result<bool> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("list the mounts")?;
    let folder = folder.display().to_string();
    Ok(mounts.lines().any(|line| line.split(' ').nth(1) == Some(&folder)))
}

/// Bytes of a quantity, rounded up.
fn bytes(quantity: &Quantity) -> Result<u64> {
    let text = quantity.0.as_str();
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let power = |base: u64, letter: &str| {
        ["k", "m", "g", "t", "p"]
            .iter()
            .position(|s| *s == letter)
            .map(|at| (0..=at).fold(1_u64, |product, _| product.saturating_mul(base)))
    };
    let unit = match suffix.to_ascii_lowercase().strip_suffix('i') {
        Some(letter) => power(1024, letter),
        None if suffix.is_empty() => Some(1),
        None => power(1000, &suffix.to_ascii_lowercase()),
    };
    let unit = unit.with_context(|| format!("{text:?} is not a size"))?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().with_context(|| format!("{text:?} is not a size"))?;
    let places = 10_u64.checked_pow(u32::try_from(part.len())?).context("too many places")?;
    let part: u64 = if part.is_empty() { 0 } else { part.parse().context("places")? };
    let rest = u128::from(part) * u128::from(unit);
    let rest = u64::try_from(rest.div_ceil(u128::from(places)))?;
    whole.checked_mul(unit).and_then(|size| size.checked_add(rest)).context("too large a size")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_the_api_server_does() {
        for (text, wanted) in [
            ("1Gi", 1 << 30),
            ("96Mi", 96 << 20),
            ("1.5Gi", 3 << 29),
            ("2G", 2_000_000_000),
            ("5k", 5_000),
            ("123", 123),
        ] {
            assert_eq!(bytes(&Quantity(text.to_owned())).expect(text), wanted, "{text}");
        }
        for text in ["", "Gi", "1Q", "-1Gi", "1e3"] {
            assert!(bytes(&Quantity(text.to_owned())).is_err(), "{text}");
        }
    }
}
