//! The connection of a client of the extension: what goes out, and what comes in piece by piece.

use std::time::Instant;

use crate::buffer::{Actions, Draft, Slots};
use crate::net::channel::Channel;
use crate::net::extension::{HEADER, Header, Kind, MAX_TAIL, RowsLayout, action_row_bytes, columns_mut};
use crate::net::shared::SharedPayloads;
use crate::net::stream::{BrokenConnection, spin_time};
use crate::net::wire::{ALIGN, padded};
use crate::vec_env::Spec;

/// How many bytes of a tail are read at once, so that memory is taken as they arrive.
const PIECE: usize = 1 << 20;

/// A message of the server, all of which is there.
pub(super) enum Message {
    /// Rows; the final columns and the tail are in `rest`.
    Rows { header: Header, draft: Draft, rest: Vec<u8> },
    /// Anything else.
    Other(Kind, Vec<u8>),
}

/// How much of the next message is there.
enum Incoming {
    Head,
    /// Column number `column`, byte `at`.
    Columns {
        header: Header,
        draft: Draft,
        column: usize,
        at: usize,
    },
    /// What follows the columns, and how long it is.
    Rest {
        header: Header,
        draft: Option<Draft>,
        length: usize,
    },
}

pub(super) struct ServerLink {
    channel: Channel,
    layout: RowsLayout,
    /// The bytes of a row of each column of actions.
    actions: Vec<usize>,
    /// How many leaves actions have, those of no fixed shape included.
    leaves: usize,
    num_slots: usize,
    shared: Option<SharedPayloads>,
    incoming: Incoming,
    /// The bytes of the header, or of what follows the columns, that are there.
    got: Vec<u8>,
}

impl ServerLink {
    pub(super) fn new(
        channel: Channel,
        spec: &Spec,
        layout: &RowsLayout,
        shared: Option<SharedPayloads>,
    ) -> Self {
        ServerLink {
            channel,
            layout: layout.clone(),
            actions: action_row_bytes(&spec.action),
            leaves: spec.action.leaves().len(),
            num_slots: spec.num_slots,
            shared,
            incoming: Incoming::Head,
            got: Vec::new(),
        }
    }

    /// Posts a message without columns.
    pub(super) fn post(&mut self, kind: Kind, tail: &[u8]) -> Result<(), BrokenConnection> {
        let head = Header::of(kind, tail).write().map_err(BrokenConnection::Garbage)?;
        self.channel.outbox().extend(head);
        self.channel.outbox().extend(tail);
        self.channel.flush()
    }

    /// Posts a step of `slots`. Without a `tail` it is one of all slots, in order.
    pub(super) fn post_step(
        &mut self,
        slots: &Slots,
        actions: &Actions,
        tail: &[u8],
    ) -> Result<(), BrokenConnection> {
        let rows = slots.len(self.num_slots);
        let leaves = (0..self.leaves).filter_map(|leaf| actions.bytes_of(leaf));
        let shared = self.shared.as_ref().filter(|_| *slots == Slots::All);
        if let Some(shared) = shared {
            let mut at = 0;
            for bytes in leaves.clone() {
                shared.write_actions(at, bytes)?;
                at = (at + bytes.len()).next_multiple_of(ALIGN);
            }
        }
        let columns = if shared.is_some() { Some(0) } else { padded(&self.actions, rows) };
        let bytes = columns.unwrap_or(usize::MAX).saturating_add(tail.len());
        let is_shared = shared.is_some();
        let header = Header { kind: Kind::Step, bytes, rows, finals: 0, is_shared };
        let outbox = self.channel.outbox();
        outbox.extend(header.write().map_err(BrokenConnection::Garbage)?);
        if !is_shared {
            for (bytes, n) in leaves.zip(&self.actions) {
                let start = outbox.len();
                match slots {
                    Slots::All => outbox.extend_from_slice(bytes),
                    Slots::List(list) => {
                        list.iter()
                            .for_each(|slot| outbox.extend_from_slice(&bytes[slot * n..(slot + 1) * n]));
                    }
                }
                let size = outbox.len() - start;
                outbox.resize(start + size.next_multiple_of(ALIGN), 0);
            }
        }
        outbox.extend_from_slice(tail);
        self.channel.flush()
    }

    /// Sends and receives what is possible without waiting. Returns the next message if all of it
    /// is there. `draft` gives memory for so many rows, which are the next ones to be expected.
    pub(super) fn pump(
        &mut self,
        mut draft: impl FnMut(usize) -> Result<Draft, BrokenConnection>,
    ) -> Result<Option<Message>, BrokenConnection> {
        if self.channel.is_sending() {
            self.channel.flush()?;
        }
        loop {
            match &mut self.incoming {
                Incoming::Head => {
                    if !fill(&mut self.channel, &mut self.got, HEADER)? {
                        return Ok(None);
                    }
                    let head = self.got[..].try_into().expect("as many bytes as a header has");
                    self.got.clear();
                    self.begin(Header::read(head).map_err(BrokenConnection::Garbage)?, &mut draft)?;
                }
                Incoming::Columns { header, draft, column, at } => {
                    let mut columns = columns_mut(draft.batch_mut());
                    while *column < columns.len() {
                        let rows = 0..header.rows;
                        let mut padding = [0; ALIGN];
                        let size = columns[*column].row_bytes() * header.rows;
                        let read = if *at < size {
                            columns[*column]
                                .write_rows(rows, |bytes| self.channel.read_some(&mut bytes[*at..]))
                        } else if *at < size.next_multiple_of(ALIGN) {
                            self.channel.read_some(&mut padding[..size.next_multiple_of(ALIGN) - *at])
                        } else {
                            (*column, *at) = (*column + 1, 0);
                            continue;
                        };
                        match read? {
                            Some(n) => *at += n,
                            None => return Ok(None),
                        }
                    }
                    let Incoming::Columns { header, draft, .. } =
                        std::mem::replace(&mut self.incoming, Incoming::Head)
                    else {
                        unreachable!("it was looked at")
                    };
                    let columns = if header.is_shared { 0 } else { self.bytes(&header).0 };
                    let length = header.bytes - columns;
                    self.incoming = Incoming::Rest { header, draft: Some(draft), length };
                }
                Incoming::Rest { length, .. } => {
                    if !fill(&mut self.channel, &mut self.got, *length)? {
                        return Ok(None);
                    }
                    let rest = std::mem::take(&mut self.got);
                    return Ok(Some(match std::mem::replace(&mut self.incoming, Incoming::Head) {
                        Incoming::Rest { header, draft: Some(draft), .. } => {
                            Message::Rows { header, draft, rest }
                        }
                        Incoming::Rest { header, .. } => Message::Other(header.kind, rest),
                        _ => unreachable!("it was looked at"),
                    }));
                }
            }
        }
    }

    /// The bytes of the columns and of the final columns of a message, whose numbers of rows were
    /// checked.
    pub(super) fn bytes(&self, header: &Header) -> (usize, usize) {
        self.layout.bytes(header.rows, header.finals).unwrap_or_default()
    }

    /// Begins a message, whose header has come.
    fn begin(
        &mut self,
        header: Header,
        draft: &mut impl FnMut(usize) -> Result<Draft, BrokenConnection>,
    ) -> Result<(), BrokenConnection> {
        let garbage = BrokenConnection::Garbage;
        if header.kind != Kind::Rows {
            let length = header.tail(Some(0), MAX_TAIL).map_err(garbage)?;
            self.incoming = Incoming::Rest { header, draft: None, length };
            return Ok(());
        }
        let mut draft = draft(header.rows)?;
        let may_share = self.shared.is_some() && header.rows == self.num_slots;
        if header.finals > header.rows || (header.is_shared && !may_share) {
            return Err(garbage(format!("its rows make no sense: {header:?}")));
        }
        let (columns, finals) = self.bytes(&header);
        let columns = if header.is_shared { 0 } else { columns };
        header.tail(columns.checked_add(finals), MAX_TAIL).map_err(garbage)?;
        self.incoming = match &self.shared {
            Some(shared) if header.is_shared => {
                let mut at = 0;
                for column in columns_mut(draft.batch_mut()) {
                    column.write_rows(0..header.rows, |bytes| shared.read_steps(at, bytes))?;
                    at += (column.row_bytes() * header.rows).next_multiple_of(ALIGN);
                }
                Incoming::Rest { header, draft: Some(draft), length: header.bytes }
            }
            _ => Incoming::Columns { header, draft, column: 0, at: 0 },
        };
        Ok(())
    }

    /// Waits until `until` for something to do.
    pub(super) fn wait(&self, until: Instant) -> Result<(), BrokenConnection> {
        if !self.channel.is_sending() {
            let left = until.saturating_duration_since(Instant::now());
            self.channel.spin(spin_time(1).min(left))?;
        }
        self.channel.wait_to_move(until)?;
        Ok(())
    }
}

impl Drop for ServerLink {
    fn drop(&mut self) {
        self.channel.shut();
    }
}

/// Adds what is there to `got`, up to `length` bytes. Returns whether all of them are there.
fn fill(channel: &mut Channel, got: &mut Vec<u8>, length: usize) -> Result<bool, BrokenConnection> {
    while got.len() < length {
        let from = got.len();
        got.resize(length.min(from + PIECE), 0);
        let read = channel.read_some(&mut got[from..]);
        got.truncate(from + *read.as_ref().ok().and_then(Option::as_ref).unwrap_or(&0));
        if read?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}
