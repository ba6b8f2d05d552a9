//! `kelp serve`: the broker without a host.

#[path = "kelp/metrics.rs"]
mod metrics;

use kelp::config::Config;
use kelp::config::listeners::Address;
use kelp::config::server::{properties, property};
use kelp::engine::{Backend, Engine, EngineError, ThreadOptions};
use kelp::ffi::allocator::have_few_arenas;
use kelp::store::objects::Objects;
use kelp::store::objects::directory::{Directory, Durability};
use kelp::store::objects::filer::{self, Filer};
use kelp::store::objects::memory::Memory;
use kelp::store::{Owner, State};
use lexopt::Arg::{Long, Short, Value};
use lexopt::ValueExt;
use std::error::Error;
use std::io::IsTerminal;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

const USAGE: &str = "\
Usage: kelp serve --listen HOST:PORT [--advertise HOST:PORT]
                  (--data DIR | --filer HOST:PORT | --memory) [OPTIONS]

  --listen HOST:PORT      where clients connect; may be repeated. Without it, what the property
                          listeners says
  --advertise HOST:PORT   what clients of the --listen before it are told to connect to
  --data DIR              keep all data in this directory
  --fsync                 with --data: write to the disk before answering, not only to the
                          operating system
  --filer HOST:PORT       keep all data on this SeaweedFS filer; HOST:PORT.GRPC_PORT if its gRPC is
                          not at PORT + 10000. Several, with commas, must share one store
  --filer-dir DIR         the filer's directory that holds everything; without it, /kelp
  --take-over             with --filer: take the data over at once from a broker that has it,
                          instead of standing by
  --memory                keep all data in memory: it is gone when the broker ends
  --config FILE           Kafka's server properties, one NAME=VALUE a line
  --set NAME=VALUE        one of these properties; may be repeated
  --metrics HOST:PORT     what Prometheus reads, at http://HOST:PORT/metrics
";

/// How long requests that are under way may take when the broker is stopped.
const DRAIN: Duration = Duration::from_secs(5);

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

fn main() -> ExitCode {
    have_few_arenas();
    match Options::parse().and_then(serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kelp: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    config: Config,
    place: Place,
    metrics: Option<Address>,
}

/// Where the data is kept.
enum Place {
    Memory,
    Directory(PathBuf, Durability),
    Filer(filer::Options),
}

#[derive(Default)]
struct Arguments {
    listen: Vec<(Address, Option<Address>)>,
    data: Option<PathBuf>,
    fsync: bool,
    filer: Option<String>,
    filer_dir: Option<String>,
    take_over: bool,
    memory: bool,
    files: Vec<String>,
    set: Vec<String>,
    metrics: Option<Address>,
}

impl Options {
    fn parse() -> Result<Self> {
        let arguments = Arguments::parse()?;
        let place = arguments.place()?;
        let mut set: Vec<(&str, &str)> = vec![match &place {
            Place::Filer(_) => {
                ("kelp.takeover", if arguments.take_over { "true" } else { "false" })
            }
            // A directory is held by its lock, and nobody else sees this memory.
            Place::Directory(..) | Place::Memory => ("kelp.registration", "false"),
        }];
        for text in &arguments.files {
            set.extend(properties(text)?);
        }
        for line in &arguments.set {
            set.push(property(line)?);
        }
        let (listeners, advertised) = arguments.listeners();
        if !arguments.listen.is_empty() {
            set.push(("listeners", &listeners));
            set.push(("advertised.listeners", &advertised));
        } else if !set.iter().any(|(name, _)| *name == "listeners") {
            return Err("say where clients connect: --listen HOST:PORT".into());
        }
        Ok(Self {
            config: Config::from_properties(set)?,
            place,
            metrics: arguments.metrics.clone(),
        })
    }
}

impl Arguments {
    fn parse() -> Result<Self> {
        let mut read = Self::default();
        let mut parser = lexopt::Parser::from_env();
        let mut command = None;
        while let Some(argument) = parser.next()? {
            match argument {
                Long("listen") => read.listen.push((address(&parser.value()?.string()?)?, None)),
                Long("advertise") => {
                    let last = read.listen.last_mut();
                    let (_, advertise) = last.ok_or("--advertise belongs behind a --listen")?;
                    *advertise = Some(address(&parser.value()?.string()?)?);
                }
                Long("data") => read.data = Some(parser.value()?.into()),
                Long("fsync") => read.fsync = true,
                Long("filer") => read.filer = Some(parser.value()?.string()?),
                Long("filer-dir") => read.filer_dir = Some(parser.value()?.string()?),
                Long("take-over") => read.take_over = true,
                Long("memory") => read.memory = true,
                Long("config") => {
                    let path = parser.value()?;
                    let text = std::fs::read_to_string(&path);
                    read.files.push(text.map_err(|e| format!("{}: {e}", path.display()))?);
                }
                Long("set") => read.set.push(parser.value()?.string()?),
                Long("metrics") => read.metrics = Some(address(&parser.value()?.string()?)?),
                Long("help") | Short('h') => {
                    print!("{USAGE}");
                    std::process::exit(0);
                }
                Value(word) if command.is_none() => command = Some(word.string()?),
                other => return Err(format!("{}\n\n{USAGE}", other.unexpected()).into()),
            }
        }
        match command.as_deref() {
            Some("serve") => Ok(read),
            _ => Err(format!("the command is missing\n\n{USAGE}").into()),
        }
    }

    fn place(&self) -> Result<Place> {
        if self.filer.is_none() && (self.filer_dir.is_some() || self.take_over) {
            return Err("--filer-dir and --take-over belong to --filer HOST:PORT".into());
        }
        let durability = if self.fsync { Durability::Machine } else { Durability::Process };
        match (&self.data, &self.filer, self.memory) {
            (Some(directory), None, false) => Ok(Place::Directory(directory.clone(), durability)),
            (None, Some(filers), false) => Ok(Place::Filer(filer::Options {
                filers: filers.split(',').map(str::parse).collect::<Result<_, _>>()?,
                directory: self.filer_dir.as_deref().unwrap_or(filer::Options::DIRECTORY).into(),
                timeout: filer::Options::TIMEOUT,
            })),
            (None, None, true) => Ok(Place::Memory),
            _ => {
                Err("say where the data is kept: --data DIR, --filer HOST:PORT or --memory".into())
            }
        }
    }

    /// The values of `listeners` and `advertised.listeners`.
    fn listeners(&self) -> (String, String) {
        let name = |i: usize| format!("LISTENER_{i}");
        let listen = self.listen.iter().enumerate();
        let listeners = listen.clone().map(|(i, (bind, _))| format!("{}://{bind}", name(i)));
        let advertised = listen.filter_map(|(i, (_, advertise))| {
            advertise.as_ref().map(|address| format!("{}://{address}", name(i)))
        });
        (listeners.collect::<Vec<_>>().join(","), advertised.collect::<Vec<_>>().join(","))
    }
}

fn address(text: &str) -> Result<Address> {
    Address::parse(text).ok_or_else(|| format!("{text:?} is not HOST:PORT").into())
}

fn serve(options: Options) -> Result<()> {
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(colours).init();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let objects: Arc<dyn Objects> = match options.place {
        Place::Memory => Arc::new(Memory::default()),
        Place::Directory(path, durability) => Arc::new(Directory::open(&path, durability)?),
        Place::Filer(options) => Arc::new(runtime.block_on(Filer::open(options))?),
    };
    let binds = options.config.endpoints.iter().map(|listener| listener.bind.clone());
    let listen: Vec<Address> = binds.collect();
    let engine = Engine::new(options.config, Backend::Objects(objects), ThreadOptions::default())?;
    let engine = Arc::new(engine);
    let outcome = runtime.block_on(run(&engine, &listen, options.metrics));
    engine.stop(DRAIN);
    outcome
}

/// Listens when the store is open; returns when a signal or the store's end says so.
async fn run(engine: &Arc<Engine>, listen: &[Address], metrics: Option<Address>) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let metrics = match metrics {
        None => String::new(),
        Some(address) => serve_metrics(engine, address).await?,
    };
    let serving = async {
        let mut state = engine.state();
        opened(&mut state).await?;
        let mut places = Vec::new();
        for address in listen {
            let port = bind(engine, address).map_err(|e| format!("{address}: {e}"))?;
            places.push(Address { host: address.host.clone(), port }.to_string());
        }
        println!("kelp serves on {}{metrics}", places.join(", "));
        engine.ended().wait_for(|ended| *ended).await?;
        Err(end_of(&state.borrow()).into())
    };
    tokio::select! {
        ended = serving => ended,
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}

/// Waits until the store serves, and says for whom it has to wait.
async fn opened(state: &mut watch::Receiver<State>) -> Result<()> {
    loop {
        match &*state.borrow_and_update() {
            State::Opening => {}
            State::Serving => return Ok(()),
            State::Standby(owner) => {
                println!("kelp stands by and does not listen: {} has the data", name(owner));
            }
            ended @ (State::Fenced(_) | State::Failed(_)) => return Err(end_of(ended).into()),
        }
        state.changed().await?;
    }
}

fn end_of(state: &State) -> String {
    match state {
        State::Fenced(owner) => format!("{} took the data over", name(owner)),
        State::Failed(reason) => reason.clone(),
        other => format!("the store ended: {other:?}"),
    }
}

fn name(owner: &Owner) -> String {
    format!("the broker at {} (host {}, pid {})", owner.address, owner.host, owner.pid)
}

/// Tells the engine's metrics in a task of its own; gives what is said of that.
async fn serve_metrics(engine: &Arc<Engine>, mut address: Address) -> Result<String> {
    let port = address.port;
    let listener = match address.host.as_str() {
        "" => TcpListener::bind(&every_address(port)[..]).await,
        host => TcpListener::bind((host, port)).await,
    };
    let listener = listener.map_err(|error| format!("metrics on {address}: {error}"))?;
    address.port = listener.local_addr()?.port();
    let engine = engine.clone();
    tokio::spawn(metrics::serve(listener, Arc::new(move || engine.metrics().finish())));
    Ok(format!("; metrics are at http://{address}/metrics"))
}

/// The addresses that stand for all of a machine, which may have no IPv6.
fn every_address(port: u16) -> [SocketAddr; 2] {
    [(Ipv6Addr::UNSPECIFIED, port).into(), (Ipv4Addr::UNSPECIFIED, port).into()]
}

/// An empty host is every address of the machine, which may have no IPv6.
fn bind(engine: &Engine, address: &Address) -> Result<u16, EngineError> {
    let listen = |host: &str| {
        engine.listen(&Address { host: host.to_string(), port: address.port }.to_string())
    };
    match address.host.as_str() {
        "" => listen("::").or_else(|_| listen("0.0.0.0")),
        host => listen(host),
    }
}
