//! Archives of stores in the form in which engines send them. For any bytes, nothing is written outside the tree, a
//! refused archive leaves no tree, and an accepted one can be sent and received again unchanged.

use std::fs;
use std::path::Path;

use arenad_storage::{ArchiveLimits, StateRoot, StorageError, StoreTree};

use crate::tape::mend_sums;
use crate::target::{FuzzTarget, InputCheck, scratch};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        "data/",
        "data/a",
        "data/l/",
        "../",
        "../../../outside",
        "/",
        "\0",
        "ustar\0",
        "ustar  \0",
        "0",
        "1",
        "2",
        "3",
        "5",
        "6",
        "g",
        "x",
        "L",
        "K",
        "S",
        "20 path=data/b\n",
        "21 linkpath=../..\n",
        "30 mtime=1.5\n",
        "20 size=99999999\n",
        "SCHILY.xattr.security.capability=",
        "uid=-1\n",
        "00000000000",
        "77777777777",
    ],
    mend: |archive| mend_sums(archive),
    ..FuzzTarget::new("trees", open)
};

/// Small enough for the memory file system of the folders.
const LIMITS: ArchiveLimits = ArchiveLimits { bytes: 4 << 20, members: 2000, folder_bytes: 1 << 20 };

fn open() -> InputCheck {
    let folder = scratch();
    let root = StateRoot::open(folder.join("root")).expect("a root");
    let outside = folder.join("outside");
    fs::create_dir(&outside).and_then(|()| fs::write(outside.join("secret"), "secret")).expect("a file");
    let (first, second) = (tree("first"), tree("second"));
    Box::new(move |input| {
        let received = root.receive(input, &first, LIMITS);
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 2, "something is beside the tree");
        assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 1, "something is outside");
        let secret = fs::metadata(outside.join("secret")).expect("it is there");
        assert_eq!(std::os::unix::fs::MetadataExt::nlink(&secret), 1, "what is outside is linked to");
        let answer = match received {
            Ok(received) => {
                let mut sent = Vec::new();
                root.send(&first, &mut sent).expect("what was received is sent");
                let again = root.receive(sent.as_slice(), &second, LIMITS).expect("what was sent is received");
                assert_eq!(
                    (again.files, again.folders, again.bytes),
                    (received.files, received.folders, received.bytes)
                );
                assert_eq!(names(&root.folder(&first)), names(&root.folder(&second)));
                root.discard(&second).expect("discarded");
                format!("taken: {received:?}")
            }
            Err(StorageError::Archive { what, .. }) => what.split('`').step_by(2).collect(),
            Err(error) => arenad_model::error::describe(&error).split('/').next().unwrap_or_default().to_owned(),
        };
        let _ = root.discard(&first).expect("discarded");
        assert_eq!(root.trees().expect("trees"), [], "what was refused left a tree");
        root.empty_trash().expect("emptied");
        answer
    })
}

fn tree(name: &str) -> StoreTree {
    StoreTree::snapshot(name, "data").expect("a name")
}

/// Lists the entries of a folder with their types and lengths.
fn names(folder: &Path) -> Vec<String> {
    let walk = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().flatten();
    let shown = |entry: walkdir::DirEntry| {
        let data = entry.metadata().expect("it is there");
        let length = if data.is_file() { data.len() } else { 0 };
        let path = entry.path().strip_prefix(folder).expect("inside");
        format!("{} {:?} {length}", path.as_os_str().as_encoded_bytes().escape_ascii(), data.file_type())
    };
    walk.map(shown).collect()
}
