//! The Rust peers of the benchmark, behind the contract of bench/peers/README.md:
//!
//!     rust-peers PEER --list | --version | [--quick] ROW...
//!
//! Rows that one run measures together are a group, as in wq_bench.

mod delayqueue;
mod keys;
mod scheduler;
mod timing;

use std::process::exit;

/// How much is done: the figures of bench/main.c.
#[derive(Clone, Copy)]
pub struct Size {
    pub quick: bool,
    pub keys: usize,
    pub slices: usize,
    pub slice_parts: usize, // what a slice's operations are divided by
    pub late_blocks: usize,
}

const FULL: Size = Size {
    quick: false,
    keys: 1_000_000,
    slices: 100,
    slice_parts: 1,
    late_blocks: 100,
};
const QUICK: Size = Size {
    quick: true,
    keys: 10_000,
    slices: 10,
    slice_parts: 10,
    late_blocks: 2,
};

impl Size {
    /// N of a row NAME@N.
    pub fn count(&self, n: usize) -> usize {
        if self.quick { n.min(100_000) } else { n }
    }

    /// How often a course of so few is measured.
    pub fn times(&self, n: usize) -> usize {
        (self.keys / n).clamp(1, self.slices)
    }
}

/// How far the curves go.
pub const COUNTS: [usize; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];

type Run = Box<dyn Fn(&Size) -> Vec<f64>>;

pub struct Group {
    pub rows: Vec<(String, &'static str)>, // name, unit
    pub run: Run,                          // a value for each
}

pub fn group(rows: &[(&str, &'static str)], run: impl Fn(&Size) -> Vec<f64> + 'static) -> Group {
    let rows = rows
        .iter()
        .map(|&(name, unit)| (name.to_string(), unit))
        .collect();
    Group {
        rows,
        run: Box::new(run),
    }
}

struct Peer {
    name: &'static str,
    package: &'static str,
    groups: fn() -> Vec<Group>,
}

const PEERS: [Peer; 2] = [
    Peer {
        name: "tokio-util",
        package: "tokio-util",
        groups: delayqueue::groups,
    },
    Peer {
        name: "kube-rs",
        package: "kube-runtime",
        groups: scheduler::groups,
    },
];

/// A figure of broken work is worth nothing.
pub fn fail(what: &str) -> ! {
    eprintln!("rust-peers: {what}");
    exit(1);
}

pub fn check(ok: bool, what: &str) {
    if !ok {
        fail(what);
    }
}

/// What the program was built with, as the lock file has it.
fn version_of(package: &str) -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let entry = format!("name = \"{package}\"\nversion = \"");
    let at = lock.find(&entry).expect("the package is locked") + entry.len();
    lock[at..].split('"').next().expect("a version")
}

fn print_version(p: &Peer) {
    let rustc = option_env!("RUST_PEERS_RUSTC").unwrap_or("rustc");
    let rustc = rustc.split(" (").next().unwrap_or(rustc);
    println!(
        "{} {} (tokio {}, {rustc})",
        p.package,
        version_of(p.package),
        version_of("tokio")
    );
}

fn run_rows(groups: &[Group], size: &Size, wanted: &[String]) {
    for g in groups {
        if !g.rows.iter().any(|(name, _)| wanted.contains(name)) {
            continue;
        }
        let values = (g.run)(size);
        for ((name, unit), value) in g.rows.iter().zip(values) {
            if wanted.contains(name) {
                println!("{{\"row\":\"{name}\",\"value\":{value:.3},\"unit\":\"{unit}\"}}");
            }
        }
    }
}

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    if args.len() < 2 {
        eprintln!("usage: rust-peers PEER --list | --version | [--quick] ROW...");
        exit(2);
    }
    let name = args.remove(0);
    let Some(p) = PEERS.iter().find(|p| p.name == name) else {
        fail(&format!("no peer is called {name}"));
    };
    let groups = (p.groups)();
    match args[0].as_str() {
        "--list" => groups
            .iter()
            .flat_map(|g| &g.rows)
            .for_each(|(name, _)| println!("{name}")),
        "--version" => print_version(p),
        first => {
            let size = if first == "--quick" { QUICK } else { FULL };
            if size.quick {
                args.remove(0);
            }
            for arg in &args {
                let known = groups
                    .iter()
                    .any(|g| g.rows.iter().any(|(name, _)| name == arg));
                check(known, &format!("{name} cannot do {arg}"));
            }
            run_rows(&groups, &size, &args);
        }
    }
}
