//! Files that are written whole or not at all, and never over another file.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Writes `text` to `stem`.json in `dir`, which is made if it is missing. The name gets
/// a number where it is taken. Returns the file's path.
pub(super) fn write(dir: &Path, stem: &str, text: &str) -> io::Result<PathBuf> {
    fs::create_dir_all(dir)?;
    let mut number = 1;
    let path = loop {
        let name = if number == 1 { format!("{stem}.json") } else { format!("{stem}-{number}.json") };
        let path = dir.join(name);
        // An empty file reserves the name against other processes.
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(_) => break path,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    };
    let draft = path.with_extension(format!("json.{}.tmp", std::process::id()));
    let written = fs::write(&draft, text).and_then(|()| fs::rename(&draft, &path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
        let _ = fs::remove_file(&path);
    }
    written.map(|()| path)
}

/// `text` with all characters replaced that a file's name should not have.
pub(super) fn plain(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.chars().map(|c| if fits(c) { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_gets_a_number_and_nothing_else_is_left() {
        let dir = std::env::temp_dir().join(format!("corral-write-{}", std::process::id()));
        let stem = plain("testing/Faulty-v0 é");
        assert_eq!(stem, "testing-Faulty-v0--");
        let paths: Vec<PathBuf> = (0..3).map(|k| write(&dir, &stem, &format!("{k}")).unwrap()).collect();
        let names: Vec<&str> = paths.iter().map(|p| p.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, [format!("{stem}.json"), format!("{stem}-2.json"), format!("{stem}-3.json")]);
        for (k, path) in paths.iter().enumerate() {
            assert_eq!(fs::read_to_string(path).unwrap(), k.to_string());
        }
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 3);
        fs::remove_dir_all(&dir).unwrap();
    }
}
