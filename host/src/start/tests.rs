//! What is written, and that nothing is overwritten.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn in_folder(test: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    test(folder.path());
}

/// The paths of all files below a folder, without those of the SDK.
fn files(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for path in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true if path.ends_with(VENDORED) => {}
                true => folders.push(path),
                false => all.push(path.strip_prefix(folder).unwrap().display().to_string()),
            }
        }
    }
    all.sort();
    all
}

fn error(created: Result<Created>) -> String {
    format!("{:#}", created.unwrap_err())
}

#[test]
fn a_harness_is_written_whole_and_over_nothing() {
    in_folder(|at| {
        let demo = at.join("a b/demo");
        assert_eq!(new(&demo, None, Sdk::Vendored).unwrap(), Created { folder: demo.clone(), warning: None });
        assert_eq!(files(&demo), [".gitignore", "Cargo.toml", "src/lib.rs", "src/recent.rs"]);
        let manifest = fs::read_to_string(demo.join("Cargo.toml")).unwrap();
        assert!(manifest.contains("name = \"demo\"") && manifest.contains("{ path = \"spelunk-guest\" }"));
        let harness = fs::read_to_string(demo.join("src/lib.rs")).unwrap();
        assert!(harness.contains(&format!("spelunk check '{}'", demo.display())), "{harness}");
        assert!(
            error(new(&demo, None, Sdk::Vendored)).contains("holds a package, and nothing is overwritten")
        );
        let (file, link, used) = (at.join("file"), at.join("link"), at.join("used"));
        fs::write(&file, "precious").unwrap();
        symlink(at.join("nowhere"), &link).unwrap();
        fs::create_dir(&used).unwrap();
        fs::write(used.join("x"), "").unwrap();
        for path in [&file, &link] {
            assert!(error(new(path, None, Sdk::Vendored)).contains("is there, and is no folder"));
        }
        assert!(error(new(&used, None, Sdk::Vendored)).contains("is not empty"));
        assert!(error(new(&file.join("demo"), None, Sdk::Vendored)).contains("demo`: Not a directory"));
        assert!(error(new(&at.join("1"), None, Sdk::Vendored)).contains("cannot be called `1`"));
        fs::remove_file(used.join("x")).unwrap();
        new(&used, Some("other"), Sdk::Vendored).unwrap();
        assert!(fs::read_to_string(used.join("Cargo.toml")).unwrap().contains("name = \"other\""));
        let mut left: Vec<_> = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["a b", "file", "link", "used"]);
    });
}

/// A package with these lines in its manifest, and a library.
fn package(folder: &Path, more: &str) {
    fs::create_dir_all(folder.join("src")).unwrap();
    let name = folder.file_name().unwrap().to_str().unwrap();
    fs::write(folder.join("Cargo.toml"), format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n{more}"))
        .unwrap();
    fs::write(folder.join("src/lib.rs"), "").unwrap();
}

#[test]
fn a_package_gets_a_harness_beside_it() {
    in_folder(|at| {
        let queue = at.join("my-queue");
        package(&queue, "[workspace]\n");
        let created = init(&queue, Sdk::Vendored).unwrap();
        assert_eq!(created, Created { folder: queue.join("spelunk"), warning: None });
        let manifest = fs::read_to_string(queue.join("spelunk/Cargo.toml")).unwrap();
        assert!(
            manifest.contains("name = \"my-queue-spelunk\"")
                && manifest.contains("my-queue = { path = \"..\" }")
        );
        assert!(
            fs::read_to_string(queue.join("spelunk/src/lib.rs")).unwrap().contains("\nuse my_queue as _;")
        );
        assert!(error(init(&queue, Sdk::Vendored)).contains("nothing is overwritten"));
        let module = at.join("module");
        package(&module, "[lib]\ncrate-type = [\"cdylib\"]\n[workspace]\n");
        assert!(
            error(init(&module, Sdk::Vendored))
                .contains("is a cdylib, which no other crate can use: add \"rlib\"")
        );
        let program = at.join("program");
        package(&program, "[workspace]\n");
        fs::rename(program.join("src/lib.rs"), program.join("src/main.rs")).unwrap();
        assert!(error(init(&program, Sdk::Vendored)).contains("has no library that a harness can use"));
        assert!(error(init(at, Sdk::Vendored)).contains("has no Cargo.toml"));
    });
}

#[test]
fn a_name_is_left_as_it_is() {
    in_folder(|at| {
        new(&at.join("SDK-demo"), None, Sdk::Vendored).unwrap();
        let manifest = fs::read_to_string(at.join("SDK-demo/Cargo.toml")).unwrap();
        assert!(manifest.contains("\nname = \"SDK-demo\"\n"), "{manifest}");
        assert!(manifest.contains("\nspelunk-guest = { path = \"spelunk-guest\" }\n"), "{manifest}");
    });
}

#[test]
fn a_workspace_that_takes_it_for_a_member_is_told_of() {
    in_folder(|at| {
        fs::write(at.join("Cargo.toml"), "[workspace]\nmembers = [\"crates/*\"]\n").unwrap();
        let created = new(&at.join("crates/demo"), None, Sdk::Vendored).unwrap();
        let warning = created.warning.unwrap();
        assert!(warning.ends_with("`exclude = [\"crates/demo\"]`"), "{warning}");
        assert_eq!(new(&at.join("demo"), None, Sdk::Vendored).unwrap().warning, None);
    });
}
