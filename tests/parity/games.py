"""The games by their published rules, in Python without any thought of speed.

Each plays from the same `numpy.random.default_rng(seed)` as ours, and its own stream goes on from
one episode to the next. `reset` gives an observation; `step` gives an observation, a reward and
whether the game is over; `mask` tells which actions are legal, and None where all always are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Field = tuple[int, int]


class Catch:
    """bsuite's `catch.py`."""

    def __init__(self, seed: int, rows: int = 10, columns: int = 5) -> None:
        self.rng, self.rows, self.columns = np.random.default_rng(seed), rows, columns

    def reset(self) -> Array:
        self.ball_x = int(self.rng.integers(self.columns))
        self.ball_y = 0
        self.paddle_x = self.columns // 2
        return self.board()

    def step(self, action: int) -> tuple[Array, float, bool]:
        self.paddle_x = int(np.clip(self.paddle_x + (-1, 0, 1)[action], 0, self.columns - 1))
        self.ball_y += 1
        over = self.ball_y == self.rows - 1
        reward = (1.0 if self.ball_x == self.paddle_x else -1.0) if over else 0.0
        return self.board(), reward, over

    def board(self) -> Array:
        board = np.zeros((self.rows, self.columns), np.float32)
        board[self.ball_y, self.ball_x] = 1
        board[self.rows - 1, self.paddle_x] = 1
        return board

    def mask(self) -> None:
        return None


class Snake:
    """The rules and observations of Jumanji's Snake-v1."""

    def __init__(self, seed: int, rows: int = 12, columns: int = 12) -> None:
        self.rng, self.rows, self.columns = np.random.default_rng(seed), rows, columns

    def reset(self) -> Array:
        head = int(self.rng.integers(self.rows * self.columns))
        self.snake = [divmod(head, self.columns)]  # from its tail to its head
        self.put_fruit()
        return self.planes()

    def put_fruit(self) -> None:
        fields = [(row, column) for row in range(self.rows) for column in range(self.columns)]
        free = [field for field in fields if field not in self.snake]
        self.fruit = free[self.rng.integers(len(free))] if free else None

    def reached(self, action: int) -> Field:
        row, column = self.snake[-1]
        up, right = ((-1, 0), (0, 1), (1, 0), (0, -1))[action]
        return row + up, column + right

    def ends(self, action: int) -> bool:
        """Whether the move leads into a wall, or into what is left of the snake when its tail has
        moved on."""
        row, column = self.reached(action)
        inside = 0 <= row < self.rows and 0 <= column < self.columns
        return not inside or (row, column) in self.snake[1:]

    def step(self, action: int) -> tuple[Array, float, bool]:
        if self.ends(action):
            return self.planes(), 0.0, True
        field = self.reached(action)
        self.snake.append(field)
        if field != self.fruit:
            self.snake.pop(0)
            return self.planes(), 0.0, False
        self.put_fruit()
        return self.planes(), 1.0, self.fruit is None

    def planes(self) -> Array:
        planes = np.zeros((self.rows, self.columns, 5), np.float32)
        order = np.zeros((self.rows, self.columns), np.float32)
        for k, field in enumerate(self.snake):
            planes[(*field, 0)] = 1
            order[field] = k + 1
        planes[(*self.snake[-1], 1)] = 1
        planes[(*self.snake[0], 2)] = 1
        if self.fruit is not None:
            planes[(*self.fruit, 3)] = 1
        planes[..., 4] = order / order.max()
        return planes

    def mask(self) -> list[bool]:
        safe = [not self.ends(action) for action in range(4)]
        return safe if any(safe) else [True] * 4


class Game2048:
    """The original game's `game_manager.js`: tiles at x and y, moved one by one."""

    WAYS = ((0, -1), (1, 0), (0, 1), (-1, 0))

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def reset(self) -> Array:
        self.tiles: dict[Field, int] = {}
        self.add_random_tile()
        self.add_random_tile()
        return self.board()

    def add_random_tile(self) -> None:
        empty = [(x, y) for x in range(4) for y in range(4) if (x, y) not in self.tiles]
        value = 2 if self.rng.random() < 0.9 else 4
        self.tiles[empty[int(self.rng.random() * len(empty))]] = value

    def moved(self, action: int) -> tuple[dict[Field, int], int]:
        """The tiles after a move, and the sum of those that merging made."""
        way_x, way_y = self.WAYS[action]
        xs = range(3, -1, -1) if way_x == 1 else range(4)
        ys = range(3, -1, -1) if way_y == 1 else range(4)
        tiles, merged, score = dict(self.tiles), set(), 0
        for x, y in [(x, y) for x in xs for y in ys]:
            if (x, y) not in tiles:
                continue
            value, at, ahead = tiles.pop((x, y)), (x, y), (x + way_x, y + way_y)
            while ahead not in tiles and 0 <= ahead[0] < 4 and 0 <= ahead[1] < 4:
                at, ahead = ahead, (ahead[0] + way_x, ahead[1] + way_y)
            if tiles.get(ahead) == value and ahead not in merged:
                at, value = ahead, 2 * value
                merged.add(at)
                score += value
            tiles[at] = value
        return tiles, score

    def step(self, action: int) -> tuple[Array, float, bool]:
        tiles, score = self.moved(action)
        if tiles != self.tiles:
            self.tiles = tiles
            self.add_random_tile()
        return self.board(), float(score), not any(self.mask())

    def board(self) -> Array:
        board = np.zeros((4, 4), np.uint8)
        for (x, y), value in self.tiles.items():
            board[y, x] = value.bit_length() - 1
        return board

    def mask(self) -> list[bool]:
        return [self.moved(action)[0] != self.tiles for action in range(4)]


# The 69 lines of four fields, each a row, from the top, and a column.
LINES = [
    line
    for row in range(6)
    for column in range(7)
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1))
    for line in [[(row + k * down, column + k * right) for k in range(4)]]
    if all(0 <= r < 6 and 0 <= c < 7 for r, c in line)
]
Board = list[list[int]]


def has_won(board: Board, who: int) -> bool:
    return any(all(board[row][column] == who for row, column in line) for line in LINES)


def columns_with_room(board: Board) -> list[int]:
    return [column for column in range(7) if board[0][column] == 0]


def with_stone(board: Board, column: int, who: int) -> Board:
    after = [row.copy() for row in board]
    row = max(row for row in range(6) if after[row][column] == 0)
    after[row][column] = who
    return after


def worth(board: Board, column: int, who: int, depth: int) -> int:
    """What a stone in a column is worth to `who`, who looks `depth` stones ahead."""
    after = with_stone(board, column, who)
    if has_won(after, who):
        return depth
    answers = columns_with_room(after)
    if depth == 1 or not answers:
        return 0
    return -max(worth(after, answer, -who, depth - 1) for answer in answers)


class ConnectFour:
    """The game and its opponents; 1 is the player, −1 the opponent."""

    def __init__(
        self, seed: int, opponent: str = "random", depth: int = 4, first: str = "random"
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.opponent, self.depth, self.first = opponent, depth, first

    def reset(self) -> Array:
        self.board: Board = [[0] * 7 for _ in range(6)]
        second = self.rng.integers(2) == 1 if self.first == "random" else self.first == "opponent"
        if second:
            self.answer()
        return self.seen()

    def step(self, action: int) -> tuple[Array, float, bool]:
        if action not in columns_with_room(self.board):
            return self.seen(), -1.0, True
        self.board = with_stone(self.board, action, 1)
        if has_won(self.board, 1):
            return self.seen(), 1.0, True
        if not columns_with_room(self.board):
            return self.seen(), 0.0, True
        self.answer()
        if has_won(self.board, -1):
            return self.seen(), -1.0, True
        return self.seen(), 0.0, not columns_with_room(self.board)

    def answer(self) -> None:
        options = self.options()
        self.board = with_stone(self.board, options[self.rng.integers(len(options))], -1)

    def options(self) -> list[int]:
        """The columns that the opponent picks from."""
        room = columns_with_room(self.board)
        if self.opponent == "greedy":
            wins = [c for c in room if has_won(with_stone(self.board, c, -1), -1)]
            blocks = [c for c in room if has_won(with_stone(self.board, c, 1), 1)]
            return wins or blocks or room
        if self.opponent == "minimax":
            values = {column: worth(self.board, column, -1, self.depth) for column in room}
            return [column for column in room if values[column] == max(values.values())]
        return room

    def seen(self) -> Array:
        return np.array(self.board, np.int8)

    def mask(self) -> list[bool]:
        room = columns_with_room(self.board)
        return [column in room for column in range(7)]
