//! `wasi:filesystem`: descriptors.

use wasip2::clocks::wall_clock::Datetime;
use wasip2::filesystem::types::{
    Advice, Descriptor, DescriptorFlags, DescriptorType, ErrorCode, NewTimestamp, OpenFlags,
};

use crate::{BOTH, FOLLOW, KEEP, NOTHING, content, data, folder, made, open};

pub(crate) fn reading_and_writing() {
    let file = made("new", b"hello");
    assert_eq!(file.read(3, 1), Ok((b"ell".to_vec(), false)));
    assert_eq!(file.read(u64::MAX, 3), Ok((b"lo".to_vec(), true)));
    assert_eq!(file.write(b"J", 0), Ok(1));
    assert_eq!(file.write(b"", u64::MAX), Ok(0));
    assert_eq!(file.write(b"x", u64::MAX), Err(ErrorCode::FileTooLarge));
    assert_eq!(content(&file), b"Jello");
    assert_eq!((file.sync(), file.sync_data()), (Ok(()), Ok(())));
    assert_eq!(file.advise(0, u64::MAX, Advice::WillNeed), Ok(()));
    assert_eq!(file.advise(1, u64::MAX, Advice::NoReuse), Err(ErrorCode::Invalid));
    let root = folder("/");
    let reader = open(&root, "new", NOTHING, DescriptorFlags::READ).unwrap();
    assert_eq!(reader.write(b"x", 0), Err(ErrorCode::BadDescriptor));
    assert_eq!(reader.write_via_stream(0).err(), Some(ErrorCode::BadDescriptor));
    assert_eq!(reader.append_via_stream().err(), Some(ErrorCode::BadDescriptor));
    assert_eq!(reader.set_size(0), Err(ErrorCode::NotPermitted));
    let writer = open(&root, "new", NOTHING, DescriptorFlags::WRITE).unwrap();
    assert_eq!(writer.read(1, 0), Err(ErrorCode::BadDescriptor));
    assert_eq!(writer.read_via_stream(0).err(), Some(ErrorCode::BadDescriptor));
    assert_eq!(root.read(1, 0), Err(ErrorCode::BadDescriptor));
    assert_eq!(root.write(b"a", 0), Err(ErrorCode::BadDescriptor));
    assert_eq!(root.sync(), Ok(()));
    assert_eq!(file.stat_at(KEEP, "a").err(), Some(ErrorCode::NotDirectory));
}

pub(crate) fn ends() {
    let file = made("new", b"hello");
    assert_eq!(file.read(0, 0), Ok((Vec::new(), false)));
    assert_eq!(file.read(5, 0), Ok((b"hello".to_vec(), true)));
    assert_eq!(file.read(1, 5), Ok((Vec::new(), true)));
    assert_eq!(file.read(1, u64::MAX), Ok((Vec::new(), true)));
    assert_eq!(file.set_size(2), Ok(()));
    assert_eq!(file.set_size(4), Ok(()));
    assert_eq!(content(&file), b"he\0\0");
    assert_eq!(file.set_size(u64::MAX), Err(ErrorCode::FileTooLarge));
}

fn flags(file: &Descriptor) -> DescriptorFlags {
    file.get_flags().unwrap()
}

pub(crate) fn attributes() {
    let (root, file) = (folder("/"), made("new", b"hello"));
    assert_eq!(flags(&file), BOTH);
    assert_eq!(flags(&root), DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY);
    let asked = DescriptorFlags::WRITE | DescriptorFlags::DATA_INTEGRITY_SYNC;
    assert_eq!(flags(&open(&root, "new", NOTHING, asked).unwrap()), asked);
    let asked = DescriptorFlags::FILE_INTEGRITY_SYNC | DescriptorFlags::REQUESTED_WRITE_SYNC;
    assert_eq!(flags(&open(&root, "new", NOTHING, asked).unwrap()), asked);
    assert_eq!(file.get_type(), Ok(DescriptorType::RegularFile));
    assert_eq!(root.get_type(), Ok(DescriptorType::Directory));
    let stat = file.stat().unwrap();
    assert_eq!((stat.type_, stat.link_count, stat.size), (DescriptorType::RegularFile, 1, 5));
    let modified = stat.data_modification_timestamp.unwrap();
    assert_eq!((modified.seconds, modified.nanoseconds), (1_735_689_600, 0));
    let stat = data().stat_at(KEEP, "link").unwrap();
    assert_eq!((stat.type_, stat.link_count, stat.size), (DescriptorType::SymbolicLink, 1, 4));
    let stat = data().stat_at(FOLLOW, "link").unwrap();
    assert_eq!((stat.type_, stat.size), (DescriptorType::RegularFile, 5));
    assert_eq!(data().stat_at(FOLLOW, "none").err(), Some(ErrorCode::NoEntry));
    let stat = root.stat().unwrap();
    assert_eq!((stat.type_, stat.size), (DescriptorType::Directory, 0));
}

fn at(seconds: u64) -> NewTimestamp {
    NewTimestamp::Timestamp(Datetime { seconds, nanoseconds: 5 })
}

/// Seconds of the times of access and change.
fn seconds(file: &Descriptor) -> (u64, u64) {
    let stat = file.stat().unwrap();
    (stat.data_access_timestamp.unwrap().seconds, stat.data_modification_timestamp.unwrap().seconds)
}

pub(crate) fn times() {
    let file = made("new", b"");
    file.set_times(at(7), at(8)).unwrap();
    assert_eq!(seconds(&file), (7, 8));
    file.set_times(NewTimestamp::NoChange, NewTimestamp::Now).unwrap();
    assert_eq!(seconds(&file), (7, 1_735_689_600));
    let root = folder("/");
    root.set_times_at(KEEP, "new", NewTimestamp::Now, at(9)).unwrap();
    assert_eq!(seconds(&file), (1_735_689_600, 9));
    assert_eq!(root.set_times_at(KEEP, "none", at(1), at(1)), Err(ErrorCode::NoEntry));
    // What no clock shows is the last that one can.
    file.set_times(at(u64::MAX), NewTimestamp::NoChange).unwrap();
    assert_eq!(seconds(&file).0, u64::MAX / 1_000_000_000);
    let data = data();
    data.set_times_at(FOLLOW, "link", at(3), at(3)).unwrap();
    assert_eq!(seconds(&open(&data, "file", NOTHING, BOTH).unwrap()), (3, 3));
}

fn names(directory: &Descriptor) -> Vec<(String, DescriptorType)> {
    let stream = directory.read_directory().unwrap();
    let next = || stream.read_directory_entry().unwrap().map(|entry| (entry.name, entry.type_));
    let mut names: Vec<_> = std::iter::from_fn(next).collect();
    assert!(stream.read_directory_entry().unwrap().is_none());
    names.sort();
    names
}

pub(crate) fn listing() {
    let expected = [
        ("dir", DescriptorType::Directory),
        ("file", DescriptorType::RegularFile),
        ("link", DescriptorType::SymbolicLink),
    ];
    assert_eq!(names(&data()), expected.map(|(name, kind)| (name.to_string(), kind)));
    let file = open(&data(), "file", NOTHING, DescriptorFlags::READ).unwrap();
    assert_eq!(file.read_directory().err(), Some(ErrorCode::NotDirectory));
}

pub(crate) fn listing_while_it_changes() {
    let root = folder("/");
    root.create_directory_at("d").unwrap();
    let directory = open(&root, "d", OpenFlags::DIRECTORY, DescriptorFlags::READ).unwrap();
    let name = |index: u32| format!("d/{index}");
    (0..20).for_each(|index| drop(made(&name(index), b"")));
    let stream = directory.read_directory().unwrap();
    let mut found: Vec<String> =
        (0..10).map(|_| stream.read_directory_entry().unwrap().unwrap().name).collect();
    found.iter().for_each(|name| root.unlink_file_at(&format!("d/{name}")).unwrap());
    found.extend(std::iter::from_fn(|| stream.read_directory_entry().unwrap()).map(|entry| entry.name));
    found.sort_by_key(|name| name.parse::<u32>().unwrap());
    assert_eq!(found, (0..20).map(|index| index.to_string()).collect::<Vec<_>>());
}
