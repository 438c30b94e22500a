//! `wasi:filesystem`: what is done by a path.

use wasip2::filesystem::types::{DescriptorFlags, DescriptorType, ErrorCode, OpenFlags};

use crate::{BOTH, FOLLOW, KEEP, NOTHING, content, data, folder, made, open};

pub(crate) fn opening() {
    let (root, data) = (folder("/"), data());
    let error = |how, path: &str, flags| open(&root, path, how, flags).err();
    assert_eq!(error(NOTHING, "none", BOTH), Some(ErrorCode::NoEntry));
    assert_eq!(error(OpenFlags::CREATE | OpenFlags::EXCLUSIVE, "data", BOTH), Some(ErrorCode::Exist));
    assert_eq!(error(NOTHING, "data", BOTH), Some(ErrorCode::IsDirectory));
    assert_eq!(error(OpenFlags::DIRECTORY, "data/file", BOTH), Some(ErrorCode::NotDirectory));
    assert_eq!(error(OpenFlags::CREATE | OpenFlags::DIRECTORY, "x", BOTH), Some(ErrorCode::Invalid));
    assert_eq!(error(NOTHING, "data/file/", BOTH), Some(ErrorCode::NotDirectory));
    assert_eq!(data.open_at(KEEP, "link", NOTHING, BOTH).err(), Some(ErrorCode::Loop));
    let file = open(&data, "link", NOTHING, BOTH).unwrap();
    assert_eq!(content(&file), b"hello");
    let cut = open(&data, "file", OpenFlags::TRUNCATE, BOTH).unwrap();
    assert_eq!((content(&cut), content(&file)), (Vec::new(), Vec::new()));
    let new = open(&data, "dir/new", OpenFlags::CREATE, DescriptorFlags::WRITE).unwrap();
    assert_eq!(new.write(b"a", 0), Ok(1));
    let directory = open(&root, "data/dir", OpenFlags::DIRECTORY, DescriptorFlags::READ).unwrap();
    assert_eq!(content(&open(&directory, "new", NOTHING, BOTH).unwrap()), b"a");
    // As everywhere but in the specification, what is opened through it may be changed.
    assert_eq!(directory.unlink_file_at("new"), Ok(()));
}

pub(crate) fn directories() {
    let root = folder("/");
    root.create_directory_at("a").unwrap();
    assert_eq!(root.create_directory_at("a"), Err(ErrorCode::Exist));
    assert_eq!(root.create_directory_at("b/c"), Err(ErrorCode::NoEntry));
    root.create_directory_at("a/b").unwrap();
    assert_eq!(root.remove_directory_at("a"), Err(ErrorCode::NotEmpty));
    assert_eq!(root.unlink_file_at("a/b"), Err(ErrorCode::IsDirectory));
    root.remove_directory_at("a/b").unwrap();
    root.remove_directory_at("a").unwrap();
    assert_eq!(root.remove_directory_at("a"), Err(ErrorCode::NoEntry));
    assert_eq!(root.remove_directory_at("data/file"), Err(ErrorCode::NotDirectory));
}

pub(crate) fn links() {
    let data = data();
    assert_eq!(data.readlink_at("link").as_deref(), Ok("file"));
    assert_eq!(data.readlink_at("file"), Err(ErrorCode::Invalid));
    data.symlink_at("dir/inner", "new").unwrap();
    assert_eq!(data.symlink_at("a", "new"), Err(ErrorCode::Exist));
    assert_eq!(data.symlink_at("/a", "absolute"), Err(ErrorCode::NotPermitted));
    assert_eq!(content(&open(&data, "new", NOTHING, BOTH).unwrap()), b"inner");
    let root = folder("/");
    data.link_at(FOLLOW, "new", &root, "hard").unwrap();
    assert_eq!(root.stat_at(KEEP, "hard").unwrap().link_count, 2);
    data.link_at(KEEP, "new", &root, "soft").unwrap();
    assert_eq!(root.stat_at(KEEP, "soft").unwrap().type_, DescriptorType::SymbolicLink);
    assert_eq!(data.link_at(KEEP, "dir", &root, "x"), Err(ErrorCode::NotPermitted));
    assert_eq!(data.link_at(KEEP, "file", &root, "hard"), Err(ErrorCode::Exist));
}

pub(crate) fn renaming() {
    let (root, data) = (folder("/"), data());
    data.rename_at("file", &root, "moved").unwrap();
    assert_eq!(content(&open(&root, "moved", NOTHING, BOTH).unwrap()), b"hello");
    assert_eq!(data.stat_at(KEEP, "file").err(), Some(ErrorCode::NoEntry));
    root.rename_at("moved", &data, "dir/inner").unwrap();
    assert_eq!(content(&open(&data, "dir/inner", NOTHING, BOTH).unwrap()), b"hello");
    assert_eq!(data.rename_at("dir", &data, "dir/below"), Err(ErrorCode::Invalid));
    assert_eq!(data.rename_at("none", &data, "x"), Err(ErrorCode::NoEntry));
    assert_eq!(data.rename_at("dir", &data, "link"), Err(ErrorCode::NotDirectory));
}

pub(crate) fn objects() {
    let (one, two, root) = (data(), data(), folder("/"));
    assert!(one.is_same_object(&two) && !one.is_same_object(&root));
    let hash = |value: Result<wasip2::filesystem::types::MetadataHashValue, ErrorCode>| {
        value.map(|value| (value.lower, value.upper))
    };
    let whole = hash(one.metadata_hash()).unwrap();
    assert_eq!(hash(two.metadata_hash()), Ok(whole));
    assert_eq!(hash(root.metadata_hash_at(KEEP, "data")), Ok(whole));
    assert_ne!(hash(root.metadata_hash()), Ok(whole));
    let link = hash(one.metadata_hash_at(KEEP, "link"));
    assert_ne!(link, hash(one.metadata_hash_at(FOLLOW, "link")));
    assert_eq!(hash(one.metadata_hash_at(FOLLOW, "link")), hash(one.metadata_hash_at(KEEP, "file")));
    assert_eq!(hash(one.metadata_hash_at(KEEP, "none")), Err(ErrorCode::NoEntry));
}

pub(crate) fn outside() {
    let data = data();
    for path in ["..", "../data", "dir/../..", "/", "/data/file", "dir/../../data/file"] {
        assert_eq!(open(&data, path, NOTHING, BOTH).err(), Some(ErrorCode::NotPermitted), "{path}");
        assert_eq!(data.stat_at(FOLLOW, path).err(), Some(ErrorCode::NotPermitted), "{path}");
        assert_eq!(data.rename_at("file", &data, path), Err(ErrorCode::NotPermitted), "{path}");
        assert_eq!(data.create_directory_at(path), Err(ErrorCode::NotPermitted), "{path}");
    }
    data.symlink_at("../../data/file", "out").unwrap();
    assert_eq!(open(&data, "out", NOTHING, BOTH).err(), Some(ErrorCode::NotPermitted));
    assert_eq!(data.stat_at(KEEP, "").err(), Some(ErrorCode::NoEntry));
    assert_eq!(data.stat_at(KEEP, "a\0b").err(), Some(ErrorCode::Invalid));
    assert_eq!(data.stat_at(KEEP, &"a/".repeat(3000)).err(), Some(ErrorCode::NameTooLong));
    assert_eq!(data.stat_at(KEEP, &"a".repeat(300)).err(), Some(ErrorCode::NameTooLong));
    assert_eq!(data.stat_at(KEEP, "dir/../dir/./inner").map(|stat| stat.size).unwrap(), 5);
}

pub(crate) fn removed() {
    let (root, file) = (folder("/"), made("new", b"hello"));
    root.unlink_file_at("new").unwrap();
    assert_eq!(content(&file), b"hello");
    assert_eq!(file.stat().unwrap().link_count, 0);
    root.create_directory_at("d").unwrap();
    let directory = open(&root, "d", OpenFlags::DIRECTORY, DescriptorFlags::READ).unwrap();
    let stream = directory.read_directory().unwrap();
    root.remove_directory_at("d").unwrap();
    assert_eq!(open(&directory, "x", OpenFlags::CREATE, BOTH).err(), Some(ErrorCode::NoEntry));
    drop(directory);
    assert!(stream.read_directory_entry().unwrap().is_none());
}

pub(crate) fn too_many() {
    let data = data();
    let mut open_files = Vec::new();
    let error = loop {
        match open(&data, "file", NOTHING, BOTH) {
            Ok(file) => open_files.push(file),
            Err(error) => break error,
        }
    };
    assert_eq!(error, ErrorCode::InsufficientMemory);
    // Streams 0 to 2, the folders, and the one of this.
    assert_eq!(open_files.len(), 1024 - 3 - 2 - 1);
    open_files.pop();
    assert!(open(&data, "file", NOTHING, BOTH).is_ok());
}
