//! Files that are read and written where somebody else may have put something in the way: a link, a pipe, a device.

use std::fs::{self, Metadata, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// The content of a file, which must be a regular one: a pipe may never end.
///
/// # Errors
/// It is none, or cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a regular file. To read one that never ends, and waits for more, as some of the system are, is an error.
fn open(path: &Path) -> io::Result<fs::File> {
    let must_be_file = |metadata: Metadata| match metadata.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a file")),
    };
    // Before, since to open a device may do something, and after, since it may have been put there meanwhile.
    must_be_file(fs::metadata(path)?)?;
    let file = fs::File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    must_be_file(file.metadata()?)?;
    Ok(file)
}

/// As [`read`], of a file that has at most so many bytes.
///
/// # Errors
/// It has more.
pub fn read_at_most(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    // What a file of the system says of its length is not what is read.
    let (bytes, has_more) = read_start(path, bytes_max)?;
    if has_more {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// The first bytes of a file, which must be a regular one, and whether it has more.
///
/// # Errors
/// It is none, or cannot be read.
pub fn read_start(path: &Path, bytes_max: u64) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    open(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    let has_more = bytes.len() as u64 > bytes_max;
    bytes.truncate(bytes_max as usize);
    Ok((bytes, has_more))
}

/// Writes a file whole or not at all: under another name first, which then takes the place of what is at `path`. A symbolic
/// link there is replaced, not followed.
///
/// # Errors
/// The folder cannot be written to.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    // As any other file would have them; what the user's mask takes away is.
    fs::metadata(folder)?;
    // The error without the name of the temporary file, which means nothing to the user.
    let file = builder.prefix(".spelunk").permissions(Permissions::from_mode(0o666)).tempfile_in(folder);
    let mut file = file.map_err(|error| io::Error::from(error.kind()))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// As [`write()`], to a path that the user named, which may be a device or a pipe.
///
/// # Errors
/// It cannot be written to.
pub fn write_named(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let is_other = |metadata: Metadata| !metadata.is_file() && !metadata.is_dir();
    match fs::metadata(path).is_ok_and(is_other) {
        true => fs::write(path, bytes),
        false => write(path, bytes),
    }
}

/// Makes the folder `path`, which lies in `base` or is it, and all between. None of them may be a symbolic link, since a
/// checked-out repository may hold one that leads anywhere.
///
/// # Errors
/// One is a link, or cannot be made.
pub fn make_folder(base: &Path, path: &Path) -> Result<()> {
    let below = path.strip_prefix(base).context("the folder lies in its base")?;
    let mut folder = base.to_path_buf();
    make_one(&folder)?;
    for part in below.components() {
        ensure!(matches!(part, Component::Normal(_)), "`{}` is no folder of its own", path.display());
        folder.push(part);
        make_one(&folder)?;
    }
    Ok(())
}

fn make_one(folder: &Path) -> Result<()> {
    refuse_link(folder)?;
    let shown = folder.display();
    ensure!(folder.is_dir() || !folder.exists(), "cannot make the folder `{shown}`: there is a file");
    let made = match folder.is_dir() {
        true => Ok(()),
        false => fs::create_dir_all(folder),
    };
    made.with_context(|| format!("cannot make the folder `{shown}`"))
}

/// Refuses what is a symbolic link.
///
/// # Errors
/// It is one.
pub fn refuse_link(path: &Path) -> Result<()> {
    ensure!(
        !path.is_symlink(),
        "`{}` is a symbolic link, through which nothing is written: remove it, or name another folder",
        path.display()
    );
    Ok(())
}

/// The folder of campaigns where no other is named.
pub const FOLDER: &str = ".spelunk";

/// Refuses a path through a symbolic link at or below such a folder: a checked-out repository may hold one that leads anywhere.
///
/// # Errors
/// It is one.
pub fn refuse_links_below(path: &Path) -> Result<()> {
    let mut part = PathBuf::new();
    let mut is_below = false;
    for component in path.components() {
        is_below |= component.as_os_str() == FOLDER;
        part.push(component);
        if is_below {
            refuse_link(&part)?;
        }
    }
    Ok(())
}

/// The files in a folder whose names end in `.extension`, all where there is none, in the order of their names.
///
/// # Errors
/// The folder cannot be read.
pub fn files(folder: &Path, extension: Option<&str>) -> io::Result<Vec<PathBuf>> {
    let entries: io::Result<Vec<_>> = fs::read_dir(folder)?.collect();
    let paths = entries?.into_iter().map(|entry| entry.path());
    let is_wanted = |path: &PathBuf| {
        path.is_file()
            && extension.is_none_or(|wanted| path.extension().is_some_and(|extension| extension == wanted))
    };
    let mut files: Vec<PathBuf> = paths.filter(is_wanted).collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_is_replaced_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (victim, link) = (folder.path().join("victim"), folder.path().join("link"));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &link).unwrap();
        write(&link, b"ours").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert_eq!((fs::read(&link).unwrap(), link.is_symlink()), (b"ours".to_vec(), false));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        let device = folder.path().join("device");
        symlink("/dev/null", &device).unwrap();
        write_named(&device, b"nothing").unwrap();
        assert!(device.is_symlink());
    }

    #[test]
    fn no_folder_is_made_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (base, victim) = (folder.path().join("base"), folder.path().join("victim"));
        fs::create_dir(&victim).unwrap();
        make_folder(&base, &base.join("one/two")).unwrap();
        assert!(base.join("one/two").is_dir());
        symlink(&victim, base.join("link")).unwrap();
        let error = make_folder(&base, &base.join("link/findings")).unwrap_err();
        assert!(error.to_string().contains("link` is a symbolic link, through which nothing is written"));
        assert!(make_folder(&base, &base.join("../victim/x")).is_err());
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
    }

    #[test]
    fn only_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap_err().to_string(), "it is not a file");
        assert_eq!(read(Path::new("/dev/zero")).unwrap_err().to_string(), "it is not a file");
        write(&folder.path().join("a.b"), b"x").unwrap();
        write(&folder.path().join("a.b"), b"xyz").unwrap();
        let start = |max| read_start(&folder.path().join("a.b"), max).unwrap();
        assert_eq!([start(2), start(3)], [(b"xy".to_vec(), true), (b"xyz".to_vec(), false)]);
        assert_eq!(read_start(Path::new("/dev/zero"), 5).unwrap_err().to_string(), "it is not a file");
        assert_eq!(files(folder.path(), Some("b")).unwrap(), [folder.path().join("a.b")]);
        assert_eq!(files(folder.path(), Some("c")).unwrap(), [] as [PathBuf; 0]);
    }
}
