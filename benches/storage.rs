//! The cost of a further copy of a store, in time and on disk: clones on XFS beside plain copies, in the same run.
//!
//! Run with `cargo bench --bench storage` or `make bench`. Needs root, because it mounts a file system of its own, and
//! about 10 GB of disk.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use arenad_model::ids::{EnvironmentName, SiteName};
use arenad_model::instance::InstanceId;
use arenad_storage::{StateRoot, StoreTree};

/// How often each operation is measured; the median counts.
const ROUNDS: u64 = 5;

/// A store to be copied: number of files, bytes of each, files per folder.
struct SampleStore {
    name: &'static str,
    files: usize,
    bytes: usize,
    together: usize,
}

const STORES: [SampleStore; 2] = [
    SampleStore { name: "2 GiB in 20 files", files: 20, bytes: (2 << 30) / 20, together: 20 },
    SampleStore { name: "20,000 files of 6 KB", files: 20_000, bytes: 6_000, together: 100 },
];

fn main() {
    let disk = XfsDisk::mount();
    println!("\ncopies of a store on one XFS: arenad's clones against `cp -a` without sharing, medians of {ROUNDS}\n");
    println!(
        "{:22} {:>10} {:>10} {:>7} {:>12} {:>12} {:>9}",
        "store", "clone", "copy", "ratio", "clone takes", "copy takes", "of store"
    );
    for store in STORES {
        measure(&disk, &store);
    }
}

fn measure(disk: &XfsDisk, store: &SampleStore) {
    let root = StateRoot::open(disk.mount.join("root")).expect("a state root");
    assert!(root.clones(), "XFS with reflinks");
    let snapshot = StoreTree::snapshot("bench", "data").expect("a name");
    let folder = root.folder(&snapshot);
    fill(&folder, store);
    let size = root.usage(&snapshot).expect("a tree").allocated_bytes;
    let clones = (0..ROUNDS).map(|round| disk.time(|| assert!(root.clone_tree(&snapshot, &instance(round)).is_ok())));
    let (clone, clone_takes) = medians(clones.collect());
    let exchanges = (0..ROUNDS).map(|round| {
        let begun = Instant::now();
        root.exchange(&instance(round), root.fresh(&snapshot).expect("a clone")).expect("an exchange");
        begun.elapsed()
    });
    let exchange = median(exchanges.collect());
    let discards = (0..ROUNDS).map(|round| {
        let begun = Instant::now();
        root.discard(&instance(round)).expect("a tree");
        begun.elapsed()
    });
    let discard = median(discards.collect());
    root.empty_trash().expect("the trash");
    let copy = disk.mount.join("copy");
    let copies = (0..ROUNDS).map(|_| {
        let taken = disk.time(|| run("cp", &["-a", "--reflink=never", text(&folder), text(&copy)]));
        fs::remove_dir_all(&copy).expect("a copy");
        taken
    });
    let (copied, copy_takes) = medians(copies.collect());
    println!(
        "{:22} {:>7.0} ms {:>7.0} ms {:>6.0}x {:>9.2} MB {:>9.0} MB {:>7.2} %",
        store.name,
        ms(clone),
        ms(copied),
        ms(copied) / ms(clone),
        clone_takes as f64 / 1e6,
        copy_takes as f64 / 1e6,
        clone_takes as f64 / size as f64 * 100.0
    );
    println!("{:22} exchange in place, clone included: {:.0} ms; discard: {:.2} ms", "", ms(exchange), ms(discard));
    root.discard(&snapshot).expect("a tree");
    root.empty_trash().expect("the trash");
}

fn instance(generation: u64) -> StoreTree {
    let environment = EnvironmentName::parse("bench").expect("a name");
    let id = InstanceId::serving(&environment, &SiteName::parse("store").expect("a name"));
    StoreTree::instance(&id, generation, "data").expect("a name")
}

fn fill(folder: &Path, store: &SampleStore) {
    // Content that does not compress and contains no holes.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let block: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    })
    .take(1 << 20)
    .collect();
    for number in 0..store.files {
        let within = folder.join((number / store.together).to_string());
        fs::create_dir_all(&within).expect("a folder");
        let mut file = File::create(within.join(number.to_string())).expect("a file");
        let mut left = store.bytes;
        while left > 0 {
            let length = left.min(block.len());
            file.write_all(&block[..length]).expect("room");
            left -= length;
        }
    }
    sync(folder);
}

/// A file that contains an XFS; it is removed when the value is dropped.
struct XfsDisk {
    mount: PathBuf,
    _folder: tempfile::TempDir,
}

impl XfsDisk {
    fn mount() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, mount) = (folder.path().join("disk"), folder.path().join("mount"));
        File::create(&file).and_then(|file| file.set_len(8 << 30)).expect("a file");
        run("mkfs.xfs", &["-q", "-m", "reflink=1", text(&file)]);
        fs::create_dir(&mount).expect("a folder");
        run("mount", &["-o", "loop,noatime", text(&file), text(&mount)]);
        Self { mount, _folder: folder }
    }

    fn used(&self) -> u64 {
        sync(&self.mount);
        let found = rustix::fs::statvfs(&self.mount).expect("a file system");
        (found.f_blocks - found.f_bfree) * found.f_frsize
    }

    /// Returns the duration of an operation and the disk space that it takes. The time ends before the data is written
    /// back from memory, because a site would not wait for that either.
    fn time(&self, work: impl FnOnce()) -> (Duration, u64) {
        let before = self.used();
        let begun = Instant::now();
        work();
        let took = begun.elapsed();
        (took, self.used().saturating_sub(before))
    }
}

impl Drop for XfsDisk {
    fn drop(&mut self) {
        run("umount", &["--lazy", text(&self.mount)]);
    }
}

fn sync(folder: &Path) {
    File::open(folder).and_then(|folder| Ok(rustix::fs::syncfs(&folder)?)).expect("it is brought to disk");
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().expect("it is installed");
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain name")
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn medians(taken: Vec<(Duration, u64)>) -> (Duration, u64) {
    let (times, room): (Vec<Duration>, Vec<u64>) = taken.into_iter().unzip();
    (median(times), median(room))
}

fn median<T: Ord + Copy + Default>(mut values: Vec<T>) -> T {
    values.sort();
    values.get(values.len() / 2).copied().unwrap_or_default()
}
