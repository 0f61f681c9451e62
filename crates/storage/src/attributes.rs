//! The metadata of a file: owner, mode, times and extended attributes (which include access control lists and
//! capabilities).

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::{AtFlags, Gid, Mode, Stat, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

/// The maximum size of a list of names and of a value on Linux (`xattr(7)`).
const XATTR_BYTES: usize = 64 << 10;

/// The initial size of the buffer for names. Most files have no extended attributes, and few have more than fit.
const USUAL_LIST_BYTES: usize = 512;

/// The mode bits that a change of owner clears.
const SET_ID: u32 = 0o6000;

/// XFS shows access control lists a second time, in its own format.
const XFS_LISTS: [&CStr; 2] = [c"trusted.SGI_ACL_FILE", c"trusted.SGI_ACL_DEFAULT"];

/// Extended attributes: name and value.
pub(crate) type Xattrs = Vec<(CString, Vec<u8>)>;

/// The metadata of a file.
#[derive(Debug, Clone)]
pub(super) struct Attributes {
    pub uid: u32,
    pub gid: u32,
    /// The permission bits, including set-id and sticky bits.
    pub mode: u32,
    pub times: Timestamps,
    pub xattrs: Xattrs,
}

impl Attributes {
    /// Reads the attributes of an open file or folder.
    pub(crate) fn of_open(file: BorrowedFd<'_>, found: &Stat) -> Result<Self, Errno> {
        let names = |buffer: &mut [u8]| rustix::fs::flistxattr(file, buffer);
        let value = |name: &CStr, buffer: &mut [u8]| rustix::fs::fgetxattr(file, name, buffer);
        Ok(Self::new(found, xattrs(names, value)?))
    }

    /// Reads the attributes of an entry that cannot be opened: a link, pipe, socket or device.
    pub(crate) fn of_entry(folder: BorrowedFd<'_>, name: &CStr, found: &Stat) -> Result<Self, Errno> {
        let path = through_proc(folder, name);
        let names = |buffer: &mut [u8]| rustix::fs::llistxattr(&path, buffer);
        let value = |name: &CStr, buffer: &mut [u8]| rustix::fs::lgetxattr(&path, name, buffer);
        Ok(Self::new(found, xattrs(names, value)?))
    }

    fn new(found: &Stat, xattrs: Xattrs) -> Self {
        Self { uid: found.st_uid, gid: found.st_gid, mode: found.st_mode & 0o7777, times: times(found), xattrs }
    }

    /// Sets the attributes on an open file or folder. The order matters: a change of owner clears set-id bits and
    /// capabilities, and the times come last, because the other changes would alter them.
    pub(crate) fn give_to_open(&self, file: impl AsFd) -> Result<(), Errno> {
        let file = file.as_fd();
        // Setting a value that is already set would write to the file system's log, for each of thousands of files.
        let present = rustix::fs::fstat(file)?;
        let has_owner = (present.st_uid, present.st_gid) == (self.uid, self.gid);
        if !has_owner {
            rustix::fs::fchown(file, Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)))?;
        }
        if present.st_mode & 0o7777 != self.mode || !has_owner && self.mode & SET_ID != 0 {
            rustix::fs::fchmod(file, Mode::from_raw_mode(self.mode))?;
        }
        for (name, value) in &self.xattrs {
            rustix::fs::fsetxattr(file, name, value, XattrFlags::empty())?;
        }
        rustix::fs::futimens(file, &self.times)
    }

    /// Sets the attributes on an entry that cannot be opened. Links have no mode of their own.
    pub(crate) fn give_to_entry(&self, folder: BorrowedFd<'_>, name: &CStr, is_link: bool) -> Result<(), Errno> {
        let owner = (Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)));
        rustix::fs::chownat(folder, name, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW)?;
        if !is_link {
            rustix::fs::chmodat(folder, name, Mode::from_raw_mode(self.mode), AtFlags::empty())?;
        }
        if !self.xattrs.is_empty() {
            let path = through_proc(folder, name);
            for (name, value) in &self.xattrs {
                rustix::fs::lsetxattr(&path, name, value, XattrFlags::empty())?;
            }
        }
        rustix::fs::utimensat(folder, name, &self.times, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Sets the attributes on an open file or folder and removes its other extended attributes.
    pub(crate) fn replace_on_open(&self, file: impl AsFd) -> Result<(), Errno> {
        let file = file.as_fd();
        let present = Self::of_open(file, &rustix::fs::fstat(file)?)?;
        for (name, _) in &present.xattrs {
            if !self.xattrs.iter().any(|(kept, _)| kept == name) {
                rustix::fs::fremovexattr(file, name)?;
            }
        }
        self.give_to_open(file)
    }
}

/// Returns the times of a file that can be set. The system itself sets the third, the time of the last change (ctime).
pub(super) fn times(found: &Stat) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: found.st_atime, tv_nsec: found.st_atime_nsec as _ },
        last_modification: Timespec { tv_sec: found.st_mtime, tv_nsec: found.st_mtime_nsec as _ },
    }
}

/// Returns a path to an entry of an open folder, for calls that accept no handle. The path leads through the folder's
/// handle, so it stays valid when the folder is moved.
fn through_proc(folder: BorrowedFd<'_>, name: &CStr) -> Vec<u8> {
    let mut path = format!("/proc/self/fd/{}/", folder.as_raw_fd()).into_bytes();
    path.extend_from_slice(name.to_bytes());
    path
}

fn xattrs(
    list: impl Fn(&mut [u8]) -> Result<usize, Errno>,
    value: impl Fn(&CStr, &mut [u8]) -> Result<usize, Errno>,
) -> Result<Xattrs, Errno> {
    let mut names = vec![0; USUAL_LIST_BYTES];
    let listed = match list(&mut names) {
        Err(Errno::RANGE) => {
            names = vec![0; XATTR_BYTES];
            list(&mut names)
        }
        other => other,
    };
    let length = match listed {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP) => 0,
        Err(error) => return Err(error),
    };
    let mut found = Xattrs::new();
    let mut buffer = if length > 0 { vec![0; XATTR_BYTES] } else { Vec::new() };
    for name in names.get(..length).unwrap_or_default().split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        if XFS_LISTS.contains(&name) {
            continue;
        }
        match value(name, &mut buffer) {
            Ok(length) => found.push((name.to_owned(), buffer.get(..length).unwrap_or_default().to_vec())),
            // The attribute was removed after it was listed.
            Err(Errno::NODATA) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
