//! What a program does with files, directories, time, randomness and its input, by the standard library alone. It says what came
//! of it, so that what is built for preview 1 and for preview 2 can be compared.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn main() {
    println!("arguments {:?}", std::env::args().collect::<Vec<_>>());
    println!("variables {:?}", std::env::vars().collect::<Vec<_>>());
    println!("missing {:?}, directory {:?}", std::env::var("NONE").is_err(), std::env::current_dir());
    input();
    time();
    files().unwrap();
    directories().unwrap();
    errors();
    tree(Path::new("/"));
    panic!("the end");
}

fn input() {
    let mut line = String::new();
    println!("{:?} {line:?}", io::stdin().lock().read_line(&mut line));
    println!("{line:?}");
    let mut rest = Vec::new();
    println!("{:?} {:?}", io::stdin().read_to_end(&mut rest), rest);
    println!("{:?}", io::stdin().read(&mut [0; 4]));
    print!("no end");
    io::stdout().flush().unwrap();
    println!(" of the line");
    eprintln!("to the other stream");
}

fn time() {
    let start = Instant::now();
    std::thread::sleep(Duration::from_millis(1500));
    println!("slept {:?}", start.elapsed());
    std::thread::sleep(Duration::ZERO);
    println!("now {:?}", SystemTime::now().duration_since(UNIX_EPOCH));
    let random: HashMap<u32, u32> = (0..100).map(|key| (key, key * key)).collect();
    println!("sorted {:?}", random.into_iter().collect::<BTreeMap<_, _>>().len());
}

fn files() -> io::Result<()> {
    println!("{:?}", fs::read_to_string("/data/file"));
    fs::write("/new", vec![7; 150_000])?;
    let mut file = OpenOptions::new().read(true).write(true).open("/new")?;
    println!("{:?}", file.seek(SeekFrom::End(-3)));
    println!("{:?} {:?}", file.write(b"abcdef"), file.stream_position());
    println!("{:?}", file.seek(SeekFrom::Start(149_990)));
    let mut end = Vec::new();
    println!("{:?} {end:?} {:?}", file.read_to_end(&mut end), file.stream_position());
    println!("{end:?} {:?}", file.seek(SeekFrom::Current(-100_000)));
    file.set_len(12)?;
    println!("{:?} {:?}", file.read(&mut [0; 3]), file.metadata()?.len());
    file.seek(SeekFrom::Start(20))?;
    file.write_all(b"after a hole")?;
    file.sync_all()?;
    file.sync_data()?;
    println!("{:?}", fs::read("/new"));
    let mut appended = OpenOptions::new().append(true).open("/new")?;
    appended.write_all(b"!")?;
    let mut again = OpenOptions::new().append(true).open("/new")?;
    again.write_all(b"?")?;
    appended.write_all(b".")?;
    println!("{:?}", fs::read("/new")?.len());
    println!("{:?}", fs::copy("/new", "/copied"));
    println!("{:?}", OpenOptions::new().write(true).create_new(true).open("/copied").map(drop));
    fs::rename("/copied", "/data/dir/moved")?;
    fs::hard_link("/data/dir/moved", "/hard")?;
    File::create("/hard")?.write_all(b"short")?;
    println!("{:?}", fs::read_to_string("/data/dir/moved"));
    fs::remove_file("/hard")?;
    let modified = fs::metadata("/new")?.modified()?.duration_since(UNIX_EPOCH);
    println!("modified {modified:?}");
    Ok(())
}

fn directories() -> io::Result<()> {
    fs::create_dir_all("/a/b/c")?;
    for index in 0..40 {
        fs::write(format!("/a/b/{index}"), index.to_string())?;
    }
    println!("{:?}", fs::read_dir("/a/b")?.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>());
    fs::rename("/a/b", "/a/d")?;
    println!("{:?} {:?}", fs::remove_dir("/a/d"), fs::remove_dir("/a/d/c"));
    fs::create_dir("/gone")?;
    fs::write("/gone/x", "")?;
    fs::remove_dir_all("/gone")?;
    println!("{:?} {:?}", fs::exists("/gone"), fs::exists("/a/d/7"));
    println!("{:?}", fs::read_link("/data/link"));
    println!("{:?}", fs::symlink_metadata("/data/link")?.file_type().is_symlink());
    println!("{:?}", fs::read_to_string("/data/link"));
    Ok(())
}

fn errors() {
    println!("{:?}", File::open("/none").map(drop));
    println!("{:?}", File::open("/data/../../x").map(drop));
    println!("{:?}", File::open("/data/file/x").map(drop));
    println!("{:?}", fs::create_dir("/data"));
    println!("{:?}", fs::create_dir("/none/x"));
    println!("{:?}", fs::write("/data", "x"));
    println!("{:?}", fs::remove_file("/data"));
    println!("{:?}", fs::remove_dir("/data/file"));
    println!("{:?}", fs::rename("/data", "/data/dir/x"));
    println!("{:?}", fs::rename("/none", "/x"));
    println!("{:?}", fs::read_dir("/data/file").map(drop));
    println!("{:?}", fs::read_link("/data/file"));
    println!("{:?}", fs::metadata("/".to_string() + &"x".repeat(300)).map(drop));
    println!("{:?}", File::open("/data/file").unwrap().write(b"x"));
    // What the standard library of preview 2 says of any stream that failed is that.
    let full = fs::write("/large", vec![1; 7 << 20]).and_then(|()| fs::write("/larger", vec![1; 2 << 20]));
    println!("{:?}", full.is_err());
    println!("{:?}", fs::remove_file("/large"));
}

/// All that there is.
fn tree(at: &Path) {
    let mut entries: Vec<_> = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let attributes = fs::symlink_metadata(&path).unwrap();
        let kind = attributes.file_type();
        let modified = attributes.modified().unwrap().duration_since(UNIX_EPOCH).unwrap();
        println!("{path:?} {} {modified:?}", attributes.len());
        if kind.is_dir() {
            tree(&path);
        } else if kind.is_file() {
            println!("{:?}", fs::read(&path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
}
