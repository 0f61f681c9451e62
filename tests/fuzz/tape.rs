//! The parts of the tar format that mutations need.

/// The length of a block, and the positions of size, checksum and magic number in a header.
const BLOCK: usize = 512;

/// Gives every header of an archive its correct checksum and leaves the data between headers unchanged.
pub fn mend_sums(archive: &mut [u8]) {
    let mut at = 0;
    while let Some(block) = archive.get_mut(at..at + BLOCK) {
        if block.iter().all(|byte| *byte == 0) {
            at += BLOCK;
            continue;
        }
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let size = std::str::from_utf8(&block[124..135]).ok().and_then(|digits| usize::from_str_radix(digits, 8).ok());
        let size = size.unwrap_or_default().min(archive.len());
        at += BLOCK + size.next_multiple_of(BLOCK);
    }
}
