//! `kelp serve` as a process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

struct Serving {
    process: Child,
    /// The line that says where.
    line: String,
}

fn serve(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kelp"));
    command.arg("serve").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Serving {
    fn start(arguments: &[&str]) -> Self {
        let mut process = serve(arguments).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("kelp serves on "), "{line:?}");
        Self { process, line: line.trim().to_string() }
    }

    fn port(&self) -> u16 {
        self.line.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// Asks Metadata 1 for one topic, or for all, and gives the answer's bytes.
    fn metadata(&self, topic: Option<&str>) -> Vec<u8> {
        let mut frame = b"\0\x03\0\x01\0\0\0\x07\xff\xff".to_vec();
        match topic {
            Some(name) => {
                frame.extend(1_i32.to_be_bytes());
                frame.extend((name.len() as i16).to_be_bytes());
                frame.extend(name.as_bytes());
            }
            None => frame.extend((-1_i32).to_be_bytes()),
        }
        let mut stream = TcpStream::connect(("127.0.0.1", self.port())).unwrap();
        stream.write_all(&(frame.len() as u32).to_be_bytes()).unwrap();
        stream.write_all(&frame).unwrap();
        let mut length = [0; 4];
        stream.read_exact(&mut length).unwrap();
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut answer).unwrap();
        answer
    }

    /// Sends a signal and waits for the end.
    fn end(self, signal: &str) -> Output {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        self.process.wait_with_output().unwrap()
    }
}

fn has(answer: &[u8], text: &str) -> bool {
    answer.windows(text.len()).any(|window| window == text.as_bytes())
}

/// What a broker says that does not start.
fn refused(arguments: &[&str]) -> String {
    let output = serve(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_was_stored_is_there_after_any_end() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--listen", "127.0.0.1:0", "--data", folder.path().to_str().unwrap()];
    for (signal, topic) in [("-TERM", "first"), ("-INT", "second"), ("-KILL", "third")] {
        let broker = Serving::start(&arguments);
        assert!(has(&broker.metadata(Some(topic)), topic));
        let output = broker.end(signal);
        let code = if signal == "-KILL" { None } else { Some(0) };
        assert_eq!(output.status.code(), code, "{output:?}");
    }
    let broker = Serving::start(&arguments);
    let topics = broker.metadata(None);
    assert!(["first", "second", "third"].iter().all(|topic| has(&topics, topic)));
    broker.end("-TERM");
}

#[test]
fn a_directory_has_one_broker_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--listen", "127.0.0.1:0", "--data", folder.path().to_str().unwrap()];
    let broker = Serving::start(&arguments);
    let text = refused(&arguments);
    assert!(text.contains(&broker.process.id().to_string()), "it says who has it: {text}");
    broker.end("-TERM");
}

#[test]
fn clients_are_told_what_is_advertised() {
    let advertise = ["--listen", "127.0.0.1:0", "--advertise", "kafka.example.com:19092"];
    let broker = Serving::start(&[&advertise[..], &["--memory"]].concat());
    assert!(has(&broker.metadata(None), "kafka.example.com\0\0\x4a"));
    broker.end("-TERM");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.properties");
    let properties = "# as Kafka's\nlisteners = A://127.0.0.1:0\nadvertised.listeners=A://a.b:1\n";
    std::fs::write(&file, properties).unwrap();
    let arguments = ["--config", file.to_str().unwrap(), "--memory", "--set", "node.id=5"];
    let broker = Serving::start(&arguments);
    assert!(has(&broker.metadata(None), "\0\0\0\x05\0\x03a.b\0\0\0\x01"));
    broker.end("-TERM");
}

#[test]
fn metrics_are_told_by_http_to_who_asks_for_them() {
    let arguments = ["--memory", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];
    let broker = Serving::start(&arguments);
    let address = broker.line.split("http://").nth(1).unwrap().strip_suffix("/metrics").unwrap();
    let connect = || TcpStream::connect(address).unwrap();
    // Who says nothing, or only a part, holds up nobody.
    let silent: Vec<_> = (0..8).map(|_| connect()).collect();
    (&silent[0]).write_all(b"GET /met").unwrap();
    let ask = |parts: &[&str]| {
        let mut stream = connect();
        parts.iter().for_each(|part| stream.write_all(part.as_bytes()).unwrap());
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let page = ask(&["GET /metrics?x=1 HTTP/1.1\r\nHost: here\r", "\n\r\n"]);
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())));
    assert!(body.contains("\nkelp_state{state=\"serving\"} 1\n"), "{body}");
    for (request, status) in [
        ("HEAD /metrics HTTP/1.0\r\n\r\n", "200"),
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("DELETE /metrics HTTP/1.1\r\n\r\n", "405"),
        ("GET /metrics\r\n\r\n", "400"),
        ("\u{0}\r\n\r\n", "400"),
    ] {
        let answer = ask(&[request]);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        assert_eq!(answer.ends_with("\r\n\r\n"), status == "200", "{answer}");
    }
    assert!(ask(&[&"x".repeat(8193)]).starts_with("HTTP/1.1 431 "));
    broker.end("-TERM");
}

#[test]
fn what_makes_no_sense_is_said() {
    let memory = ["--memory", "--listen", "127.0.0.1:0"];
    let with = |more: &[&'static str]| refused(&[&memory[..], more].concat());
    assert!(with(&["--set", "log.dirs=/tmp"]).contains("unknown property log.dirs"));
    assert!(with(&["--set", "num.partitions=0"]).contains("Value must be at least 1"));
    for place in [["--data", "elsewhere"], ["--filer", "localhost:8888"]] {
        assert!(with(&place).contains("--data DIR, --filer HOST:PORT or --memory"));
    }
    assert!(with(&["--take-over"]).contains("belong to --filer"));
    assert!(with(&["--nonsense"]).contains("--nonsense"));
    let filer = ["--listen", "127.0.0.1:0", "--filer", "localhost"];
    assert!(refused(&filer).contains("\"localhost\" is not HOST:PORT or HOST:PORT.GRPC_PORT"));
    assert!(refused(&["--memory"]).contains("--listen HOST:PORT"));
    assert!(refused(&["--memory", "--listen", "9092"]).contains("\"9092\" is not HOST:PORT"));
    assert!(refused(&["--memory", "--advertise", "a:1"]).contains("behind a --listen"));
}
