//! Keeps the rules that no compiler knows: who may use whom, how long a file and a function may
//! be, and where `unsafe` and `unwrap` may stand.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms from top to bottom. A line uses only rooms below its own; those of one line do not
/// use each other.
const ROOMS: &[&[&str]] = &[
    &["ffi"],
    &["engine"],
    &["net"],
    &["dispatch"],
    &["api"],
    &["auth", "quota"],
    &["coordinator"],
    &["log"],
    &["store"],
    &["record"],
    &["messages"],
    &["protocol"],
    &["config", "metrics"],
];

const MAX_FILE_LINES: usize = 500;
const MAX_FUNCTION_LINES: usize = 70;

/// The only part of the coordinators that may wait, look at a clock or ask a store: a file and a
/// folder.
const COORDINATOR_RUNTIME: &str = "src/coordinator/runtime";

/// What a state machine must not see: it would not do the same twice.
const IMPURE: &[&str] =
    &["async ", ".await", "Instant", "SystemTime", "rand::", "HashMap", "HashSet", "crate::store"];

/// One file under `src/`, without the tests at its end.
struct Source {
    path: PathBuf,
    /// The code of each line, without comments and the insides of texts.
    lines: Vec<String>,
    /// Its module is only there in tests.
    is_test: bool,
}

impl Source {
    fn room(&self) -> &str {
        let inside = self.path.strip_prefix("src").unwrap();
        let first = inside.components().next().unwrap().as_os_str().to_str().unwrap();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// Every line for which `problem` says something.
    fn problems<'a>(
        &'a self,
        problem: impl Fn(&'a str) -> Option<String> + 'a,
    ) -> impl Iterator<Item = String> + 'a {
        self.lines.iter().enumerate().filter_map(move |(i, line)| {
            problem(line).map(|what| format!("{}:{}: {what}", self.path.display(), i + 1))
        })
    }
}

fn sources() -> Vec<Source> {
    let mut paths = Vec::new();
    collect(Path::new("src"), &mut paths);
    assert!(paths.len() > 100, "this test runs where Cargo.toml is");
    let texts: Vec<String> = paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let tests = paths.iter().zip(&texts).flat_map(|(path, text)| test_modules(path, text));
    let tests: HashSet<PathBuf> = tests.collect();
    let files = paths.into_iter().zip(&texts);
    let source = |(path, text): (PathBuf, &String)| {
        let is_test = tests.contains(&path.with_extension(""));
        Source { path, lines: code(text), is_test }
    };
    files.map(source).collect()
}

/// The modules that a file declares for tests only, each as the path of its file without `.rs`.
fn test_modules(path: &Path, text: &str) -> Vec<PathBuf> {
    let folder = match path.file_stem().unwrap().to_str().unwrap() {
        "mod" | "lib" => path.parent().unwrap().to_path_buf(),
        _ => path.with_extension(""),
    };
    let lines: Vec<&str> = text.lines().collect();
    let declared = lines.windows(2).filter_map(|pair| {
        let is_test = pair[0].starts_with("#[cfg(test)]") || pair[0].starts_with("#[cfg(any(test");
        let name = pair[1].split("mod ").nth(1)?.strip_suffix(';')?;
        is_test.then(|| folder.join(name))
    });
    declared.collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

/// The lines of a file up to its tests, as code only.
fn code(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut in_text = false;
    let mut all = text.lines().peekable();
    while let Some(line) = all.next() {
        let is_test = line.trim() == "#[cfg(test)]";
        if is_test && all.peek().is_some_and(|next| next.starts_with("mod tests {")) {
            break;
        }
        lines.push(strip(line, &mut in_text));
    }
    lines
}

/// A line without comments and the insides of texts, which may span lines.
fn strip(line: &str, in_text: &mut bool) -> String {
    let mut code = String::new();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if *in_text => drop(chars.next()),
            '"' => {
                *in_text = !*in_text;
                code.push('"');
            }
            _ if *in_text => {}
            '/' if chars.peek() == Some(&'/') => break,
            // A quote or brace as a character.
            '\'' => {
                let rest: String = chars.clone().take(3).collect();
                let len = match rest.as_bytes() {
                    [b'\\', _, b'\'', ..] => 3,
                    [_, b'\'', ..] => 2,
                    _ => 0,
                };
                chars.by_ref().take(len).for_each(drop);
            }
            _ => code.push(c),
        }
    }
    code
}

fn level(room: &str) -> Option<usize> {
    ROOMS.iter().position(|line| line.contains(&room))
}

/// The rooms that a line of code names by `crate::`.
fn used(line: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut rooms = Vec::new();
    for (place, path) in line.match_indices("crate::") {
        let rest = &line[place + path.len()..];
        if line[..place].ends_with('$') {
            continue;
        }
        match rest.strip_prefix('{') {
            Some(list) => rooms.extend(list.split(',').map(|item| {
                let item = item.trim();
                &item[..item.find(|c| !is_name(c)).unwrap_or(item.len())]
            })),
            None => rooms.push(&rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())]),
        }
    }
    rooms.retain(|room| level(room).is_some());
    rooms
}

fn assert_none(problems: Vec<String>) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn a_room_uses_only_rooms_below_its_own() {
    let mut problems = Vec::new();
    for source in sources() {
        let Some(own) = level(source.room()) else { continue };
        problems.extend(source.problems(|line| {
            let above = |room: &&str| *room != source.room() && level(room) <= Some(own);
            let above = used(line).into_iter().find(above)?;
            Some(format!("{} must not use {above}", source.room()))
        }));
    }
    assert_none(problems);
}

#[test]
fn every_room_has_its_place() {
    let unknown = |source: Source| {
        let room = source.room().to_string();
        let outside = ["lib", "bin"].contains(&room.as_str());
        (!outside && level(&room).is_none()).then(|| source.path.display().to_string())
    };
    assert_none(sources().into_iter().filter_map(unknown).collect());
}

#[test]
fn files_are_short() {
    let long = |source: &Source| {
        let lines = source.lines.len();
        (lines > MAX_FILE_LINES && !source.is_test)
            .then(|| format!("{}: {lines} lines before its tests", source.path.display()))
    };
    assert_none(sources().iter().filter_map(long).collect());
}

#[test]
fn functions_are_short() {
    let mut problems = Vec::new();
    for source in sources() {
        let mut begun: Option<(usize, usize)> = None;
        for (i, line) in source.lines.iter().enumerate() {
            let indent = line.len() - line.trim_start().len();
            match begun {
                None if is_function(line) && !line.ends_with(';') && !line.ends_with('}') => {
                    begun = Some((i, indent));
                }
                // rustfmt puts the end under the beginning.
                Some((begin, at)) if indent == at && line.trim_start().starts_with('}') => {
                    let lines = i + 1 - begin;
                    if lines > MAX_FUNCTION_LINES {
                        let path = source.path.display();
                        problems.push(format!("{path}:{}: {lines} lines", begin + 1));
                    }
                    begun = None;
                }
                Some((_, at)) if indent == at && line.trim_end().ends_with(';') => begun = None,
                _ => {}
            }
        }
    }
    assert_none(problems);
}

fn is_function(line: &str) -> bool {
    let words = line.split_whitespace();
    let mut words = words.skip_while(|word| {
        word.starts_with("pub") || ["const", "async", "unsafe", "extern", "\"\""].contains(word)
    });
    words.next() == Some("fn")
}

#[test]
fn unsafe_code_is_in_ffi_only() {
    let mut problems = Vec::new();
    for source in sources() {
        if source.room() != "ffi" {
            problems.extend(source.problems(|line| {
                let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
                words.any(|word| word == "unsafe").then(|| "unsafe".to_string())
            }));
        }
    }
    assert_none(problems);
}

#[test]
fn nothing_is_unwrapped() {
    let mut problems = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test) {
        problems.extend(source.problems(|line| {
            let found = [".unwrap()", ".expect("].into_iter().find(|call| line.contains(call));
            found.map(str::to_string)
        }));
    }
    assert_none(problems);
}

#[test]
fn coordinators_are_pure() {
    let mut problems = Vec::new();
    for source in sources() {
        let is_runtime = source.path.with_extension("").starts_with(COORDINATOR_RUNTIME);
        if source.room() == "coordinator" && !is_runtime {
            problems.extend(source.problems(|line| {
                let found = IMPURE.iter().find(|word| line.contains(*word));
                found.map(|word| format!("a state machine has no {word}"))
            }));
        }
    }
    assert_none(problems);
}

#[test]
fn what_is_no_code_does_not_count() {
    let text = "let a = \"unsafe // {\"; // .unwrap()\nlet b = '\"'; c.unwrap()\n\
                #[cfg(test)]\nmod tests {\n    x.unwrap()\n";
    assert_eq!(code(text), ["let a = \"\"; ", "let b = ; c.unwrap()"]);
    assert_eq!(used("use crate::{api::Context, log};"), ["api", "log"]);
    assert_eq!(used("fn f(x: crate::net::Network) -> $crate::api::X"), ["net"]);
}
