//! What a field of the grid holds, in one byte.

/// The colours, by their numbers in observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Colour {
    Red,
    Green,
    Blue,
    Purple,
    Yellow,
    Grey,
}

impl Colour {
    const BY_NUMBER: [Colour; 6] =
        [Colour::Red, Colour::Green, Colour::Blue, Colour::Purple, Colour::Yellow, Colour::Grey];

    /// In the order of their names, in which levels draw them.
    pub(super) const BY_NAME: [Colour; 6] =
        [Colour::Blue, Colour::Green, Colour::Grey, Colour::Purple, Colour::Red, Colour::Yellow];

    /// The word in missions.
    pub(super) fn name(self) -> &'static str {
        ["red", "green", "blue", "purple", "yellow", "grey"][self as usize]
    }
}

/// The kinds of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Thing {
    /// What the agent does not see. No field of a grid holds it.
    Unseen,
    Empty,
    Wall,
    OpenDoor,
    ClosedDoor,
    LockedDoor,
    Key,
    Ball,
    Box,
    Goal,
    Lava,
}

impl Thing {
    const ALL: [Thing; 11] = [
        Thing::Unseen,
        Thing::Empty,
        Thing::Wall,
        Thing::OpenDoor,
        Thing::ClosedDoor,
        Thing::LockedDoor,
        Thing::Key,
        Thing::Ball,
        Thing::Box,
        Thing::Goal,
        Thing::Lava,
    ];

    /// The word in missions, of what a mission can name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Thing::Key => "key",
            Thing::Ball => "ball",
            _ => "box",
        }
    }
}

/// A field's content: the thing's number times 8, plus its colour. From [`HOLDERS`] on there are
/// boxes that hold a key: `HOLDERS` plus the key's colour, times 8, plus the box's colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GridCell(u8);

const HOLDERS: u8 = Thing::ALL.len() as u8;

/// How many contents have a number below this one.
pub(super) const CELLS: usize = (HOLDERS as usize + Colour::BY_NUMBER.len()) * 8;

impl GridCell {
    pub(super) const UNSEEN: GridCell = GridCell(0);
    pub(super) const EMPTY: GridCell = GridCell::new(Thing::Empty, Colour::Red);
    pub(super) const WALL: GridCell = GridCell::new(Thing::Wall, Colour::Grey);
    pub(super) const GOAL: GridCell = GridCell::new(Thing::Goal, Colour::Green);
    pub(super) const LAVA: GridCell = GridCell::new(Thing::Lava, Colour::Red);

    pub(super) const fn new(thing: Thing, colour: Colour) -> Self {
        GridCell((thing as u8) << 3 | colour as u8)
    }

    /// A box with a key in it.
    pub(super) const fn box_with_key(colour: Colour, key: Colour) -> Self {
        GridCell((HOLDERS + key as u8) << 3 | colour as u8)
    }

    /// The content of this number, if a field can hold it.
    pub(super) fn from_code(code: u8) -> Option<Self> {
        let cell = GridCell(code);
        let is_known = usize::from(code) < CELLS && usize::from(code & 7) < Colour::BY_NUMBER.len();
        let colours = match cell.thing() {
            _ if !is_known => return None,
            Thing::Unseen => return None,
            Thing::Empty => GridCell::EMPTY,
            Thing::Wall => GridCell::WALL,
            Thing::Goal => GridCell::GOAL,
            Thing::Lava => GridCell::LAVA,
            _ => cell,
        };
        (colours == cell).then_some(cell)
    }

    pub(super) const fn code(self) -> u8 {
        self.0
    }

    pub(super) const fn thing(self) -> Thing {
        let number = self.0 >> 3;
        if number < HOLDERS { Thing::ALL[number as usize] } else { Thing::Box }
    }

    pub(super) const fn colour(self) -> Colour {
        Colour::BY_NUMBER[if self.0 & 7 < 6 { self.0 & 7 } else { 0 } as usize]
    }

    /// Its three numbers in observations: type, colour and state.
    #[inline]
    pub(super) fn encoded(self) -> [u8; 3] {
        ENCODED[usize::from(self.0)]
    }

    /// Whether the agent sees what is behind it.
    #[inline]
    pub(super) fn is_transparent(self) -> bool {
        TRANSPARENT[usize::from(self.0)]
    }

    /// Whether the agent can stand on it.
    #[inline]
    pub(super) fn is_walkable(self) -> bool {
        matches!(self.thing(), Thing::Empty | Thing::OpenDoor | Thing::Goal | Thing::Lava)
    }

    /// Whether the agent can carry it.
    #[inline]
    pub(super) fn is_portable(self) -> bool {
        matches!(self.thing(), Thing::Key | Thing::Ball | Thing::Box)
    }

    #[inline]
    pub(super) fn is_open_door(self) -> bool {
        self.thing() == Thing::OpenDoor
    }

    /// What it is after the agent, who carries `carried`, has used it.
    pub(super) fn toggled(self, carried: GridCell) -> Self {
        let colour = self.colour();
        match self.thing() {
            Thing::OpenDoor => GridCell::new(Thing::ClosedDoor, colour),
            Thing::ClosedDoor => GridCell::new(Thing::OpenDoor, colour),
            Thing::LockedDoor if carried == GridCell::new(Thing::Key, colour) => {
                GridCell::new(Thing::OpenDoor, colour)
            }
            Thing::Box if self.0 >> 3 >= HOLDERS => {
                GridCell::new(Thing::Key, Colour::BY_NUMBER[usize::from((self.0 >> 3) - HOLDERS)])
            }
            Thing::Box => GridCell::EMPTY,
            _ => self,
        }
    }
}

static ENCODED: [[u8; 3]; 256] = {
    let mut table = [[0; 3]; 256];
    let mut code = 0;
    while code < CELLS {
        let cell = GridCell(code as u8);
        let (kind, state) = match cell.thing() {
            Thing::Unseen => (0, 0),
            Thing::Empty => (1, 0),
            Thing::Wall => (2, 0),
            Thing::OpenDoor => (4, 0),
            Thing::ClosedDoor => (4, 1),
            Thing::LockedDoor => (4, 2),
            Thing::Key => (5, 0),
            Thing::Ball => (6, 0),
            Thing::Box => (7, 0),
            Thing::Goal => (8, 0),
            Thing::Lava => (9, 0),
        };
        table[code] = [kind, cell.colour() as u8, state];
        code += 1;
    }
    table
};

static TRANSPARENT: [bool; 256] = {
    let mut table = [true; 256];
    let mut code = 0;
    while code < CELLS {
        let thing = GridCell(code as u8).thing();
        table[code] = !matches!(thing, Thing::Wall | Thing::ClosedDoor | Thing::LockedDoor);
        code += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_of_one_content_and_back() {
        let known: Vec<GridCell> = (0..=255).filter_map(GridCell::from_code).collect();
        // Empty, wall, goal and lava; six colours of three doors, key, ball, box and six boxes.
        assert_eq!(known.len(), 4 + 6 * 12);
        for cell in known {
            assert_eq!(GridCell::from_code(cell.code()), Some(cell));
        }
        assert_eq!(GridCell::from_code(GridCell::UNSEEN.code()), None);
    }

    #[test]
    fn a_box_opens_to_the_key_in_it() {
        let holder = GridCell::box_with_key(Colour::Grey, Colour::Yellow);
        assert_eq!(holder.encoded(), GridCell::new(Thing::Box, Colour::Grey).encoded());
        assert_eq!(holder.toggled(GridCell::EMPTY), GridCell::new(Thing::Key, Colour::Yellow));
        assert_eq!(GridCell::new(Thing::Box, Colour::Red).toggled(GridCell::EMPTY), GridCell::EMPTY);
    }

    #[test]
    fn a_locked_door_takes_the_key_of_its_colour() {
        let door = GridCell::new(Thing::LockedDoor, Colour::Blue);
        assert_eq!(door.toggled(GridCell::new(Thing::Key, Colour::Red)), door);
        assert_eq!(door.toggled(GridCell::new(Thing::Ball, Colour::Blue)), door);
        let open = door.toggled(GridCell::new(Thing::Key, Colour::Blue));
        assert!(open.is_open_door() && open.is_walkable() && open.is_transparent());
        assert_eq!(open.toggled(GridCell::EMPTY), GridCell::new(Thing::ClosedDoor, Colour::Blue));
    }
}
