"""MiniGrid: a planner that sees the whole grid."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Spot = tuple[int, int]
"""A column and a row."""
Place = tuple[int, int, int]
"""A spot, and the way that the agent faces there."""

EMPTY, DOOR, KEY, BALL, BOX, GOAL, AGENT = 1, 4, 5, 6, 7, 8, 10
OPEN, LOCKED = 0, 2
LEFT, RIGHT, FORWARD, PICK_UP, DROP, TOGGLE, DONE = range(7)
TYPES = {"door": DOOR, "key": KEY, "ball": BALL, "box": BOX}
COLOURS = {"red": 0, "green": 1, "blue": 2, "purple": 3, "yellow": 4, "grey": 5}
WAYS = ((1, 0), (0, 1), (-1, 0), (0, -1))

# The price of a spot where something must be moved or unlocked first: more than any way around.
_OBSTACLE = 1000
# How many things may be in each other's way.
_DEPTH = 8


def planner(id: str) -> Callable[..., Array]:
    """A planner that takes the shortest way to what the mission names, opens and unlocks doors on
    that way, fetches their keys (out of boxes, too), and puts aside what blocks it."""
    minds: dict[int, Mind] = {}

    def policy(seen: dict[str, Any], *, began: Array, index: Array) -> Array:
        actions = np.zeros(len(index), np.int64)
        for row, one in enumerate(index.tolist()):
            if began[row]:
                minds[one] = Mind(str(seen["mission"][row]))
            actions[row] = minds[one].act(seen["image"][row])
        return actions

    return policy


def _front(place: Place) -> Spot:
    dx, dy = WAYS[place[2]]
    return place[0] + dx, place[1] + dy


class Mind:
    """What the planner keeps in mind during an episode."""

    def __init__(self, mission: str) -> None:
        self._mission = mission.split()
        # Elsewhere the wrong thing picked up may end the episode.
        self._may_touch = self._mission[:2] in (
            ["pick", "up"],
            ["use", "the"],
            ["get", "the"],
            ["open", "the"],
        )
        self._carried: Spot | None = None
        """The type and colour of what is carried."""
        self._plan: list[int] = []
        self._shunned: set[Spot] = set()

    def act(self, image: Array) -> int:
        """The next action."""
        if not self._plan:
            grid = image.astype(int)
            ((x, y),) = np.argwhere(grid[:, :, 0] == AGENT).tolist()
            self._at: Place = (x, y, int(grid[x, y, 2]))
            grid[x, y] = EMPTY, 0, 0
            self._grid: list[list[list[int]]] = grid.tolist()
            self._plan = self._next() or [LEFT]
            if not self._may_touch and self._mission[-1] == "square" and self._spots(BALL):
                # Balls roll about: all else may be in vain.
                self._plan = self._plan[:1]
        return self._plan.pop(0)

    def _next(self) -> list[int]:
        """Actions that bring the mission forward."""
        match self._mission:
            case ["put", "the", colour, kind, "near", "the", other, its]:
                return self._put_near(
                    self._spots(TYPES[kind], colour), self._spots(TYPES[its], other)
                )
            case ["go", "to", "the", "matching", *_]:
                return self._go_to_match()
            case ["go", "to", "the", colour, kind]:
                self._shunned = set(self._spots(DOOR))
                ((x, y),) = self._spots(TYPES[kind], colour)
                return self._pursue(lambda at: abs(at[0] - x) + abs(at[1] - y) == 1, DONE)
            case ["open", "the", "red", *_]:
                red, blue = (self._spots(DOOR, colour) for colour in ("red", "blue"))
                is_shut = bool(red) and self._cell(red[0])[2] != OPEN
                return self._pursue(self._facing(red if is_shut else blue), TOGGLE)
            case ["open", "the", "door"]:
                doors = self._spots(DOOR)
                if self._price(doors[0]) >= _OBSTACLE:
                    return self._clear(doors[0], 0)
                return self._pursue(self._facing(doors), TOGGLE)
            case ["pick", "up", "the", colour, kind] | [*_, "a", colour, kind]:
                return self._pursue(self._facing(self._spots(TYPES[kind], colour)), PICK_UP)
        goals = self._spots(GOAL)
        return self._pursue(lambda at: at[:2] in goals)

    def _put_near(self, things: list[Spot], beside: list[Spot]) -> list[int]:
        ((x, y),) = beside
        if self._carried is None:
            return self._pursue(self._facing(things), PICK_UP)

        def is_near(at: Place) -> bool:
            to = _front(at)
            is_empty = self._cell(to)[0] == EMPTY
            return is_empty and abs(to[0] - x) <= 1 and abs(to[1] - y) <= 1

        return self._pursue(is_near, DROP)

    def _go_to_match(self) -> list[int]:
        middle = len(self._grid[0]) // 2
        shown = (1, middle - 1)
        ends = {
            spot: (spot[0], middle + (1 if spot[1] > middle else -1))
            for spot in [*self._spots(KEY), *self._spots(BALL)]
            if spot != shown
        }
        is_like = {spot: self._cell(spot)[0] == self._cell(shown)[0] for spot in ends}
        self._shunned = {end for spot, end in ends.items() if not is_like[spot]}
        right = [end for spot, end in ends.items() if is_like[spot]]
        return self._pursue(lambda at: at[:2] in right)

    def _spots(self, kind: int, colour: str | int | None = None) -> list[Spot]:
        """Where things of a type and colour are."""
        if isinstance(colour, str):
            colour = COLOURS[colour]
        return [
            (x, y)
            for x, column in enumerate(self._grid)
            for y, cell in enumerate(column)
            if cell[0] == kind and colour in (None, cell[1])
        ]

    def _cell(self, spot: Spot) -> list[int]:
        return self._grid[spot[0]][spot[1]]

    def _facing(self, spots: list[Spot]) -> Callable[[Place], bool]:
        return lambda at: _front(at) in spots

    def _price(self, spot: Spot) -> float:
        """Of walking onto a spot, in steps."""
        x, y = spot
        is_within = 0 <= x < len(self._grid) and 0 <= y < len(self._grid[0])
        if not is_within or spot in self._shunned:
            return float("inf")
        kind, colour, state = self._cell(spot)
        if kind in (EMPTY, GOAL):
            return 1
        if kind == DOOR:
            is_stuck = state == LOCKED and self._carried != (KEY, colour)
            return _OBSTACLE if is_stuck else 1 if state == OPEN else 2
        is_thing = kind in (KEY, BALL, BOX)
        return _OBSTACLE if is_thing and self._may_touch else float("inf")

    def _moves(self, at: Place) -> Iterator[tuple[Place, float]]:
        x, y, facing = at
        yield (x, y, (facing + 1) % 4), 1
        yield (x, y, (facing - 1) % 4), 1
        price = self._price(to := _front(at))
        if price < float("inf"):
            yield (*to, facing), price

    def _route(self, is_there: Callable[[Place], bool]) -> list[Place]:
        """The cheapest way to such a place, from where the agent is; empty if there is none."""
        best: dict[Place, float] = {self._at: 0}
        before: dict[Place, Place] = {}
        queue: list[tuple[float, Place]] = [(0, self._at)]
        while queue:
            cost, at = heapq.heappop(queue)
            if cost > best[at]:
                continue
            if is_there(at):
                route = [at]
                while route[-1] in before:
                    route.append(before[route[-1]])
                return route[::-1]
            for to, price in self._moves(at):
                if cost + price < best.get(to, float("inf")):
                    best[to] = cost + price
                    before[to] = at
                    heapq.heappush(queue, (cost + price, to))
        return []

    def _actions(self, route: list[Place]) -> list[int]:
        actions = []
        for at, to in pairwise(route):
            if at[:2] == to[:2]:
                actions.append(RIGHT if (to[2] - at[2]) % 4 == 1 else LEFT)
            else:
                kind, _, state = self._cell(to[:2])
                actions += [TOGGLE, FORWARD] if kind == DOOR and state != OPEN else [FORWARD]
        return actions

    def _pursue(
        self, is_there: Callable[[Place], bool], last: int | None = None, depth: int = 0
    ) -> list[int]:
        """Actions to such a place, `last` there; or those that clear what is in the way."""
        route = self._route(is_there)
        for k, (at, to) in enumerate(pairwise(route)):
            if at[:2] == to[:2]:
                continue
            if self._price(to[:2]) >= _OBSTACLE:
                return self._clear(to[:2], depth + 1)
            if self._cell(to[:2])[0] == DOOR and self._cell(to[:2])[2] == LOCKED:
                # The key may be put down once the door is open.
                return [*self._actions(route[: k + 1]), TOGGLE]
        if not route:
            return []
        if last == PICK_UP:
            if self._carried is not None:
                return self._put_down()
            kind, colour, _ = self._cell(_front(route[-1]))
            self._carried = (kind, colour)
        if last == DROP:
            self._carried = None
        return self._actions(route) + ([] if last is None else [last])

    def _clear(self, spot: Spot, depth: int) -> list[int]:
        """Actions that bring nearer the day when the agent can walk over a spot."""
        kind, colour, _ = self._cell(spot)
        if depth > _DEPTH:
            return []
        if kind != DOOR:
            # A box that is opened is gone, or is a key.
            last = TOGGLE if kind == BOX else PICK_UP
            return self._pursue(self._facing([spot]), last, depth)
        keys = self._spots(KEY, colour)
        if keys:
            return self._pursue(self._facing(keys), PICK_UP, depth)
        return self._pursue(self._facing(self._spots(BOX)), TOGGLE, depth)

    def _put_down(self) -> list[int]:
        """Drops what is carried where it blocks nothing, or else anywhere."""
        all_of_it = self._within_reach(None)
        known: dict[Spot, bool] = {}

        def is_harmless(at: Place) -> bool:
            to = _front(at)
            if to not in known:
                x, y = to
                known[to] = (
                    self._cell(to)[0] == EMPTY
                    and to != self._at[:2]
                    and not any(
                        self._cell((x + dx, y + dy))[0] in (KEY, BALL, BOX) for dx, dy in WAYS
                    )
                    and self._within_reach(to) == all_of_it - 1
                )
            return known[to]

        for is_there in (is_harmless, lambda at: self._cell(_front(at))[0] == EMPTY):
            route = self._route(is_there)
            if route and not any(self._price(at[:2]) >= _OBSTACLE for at in route[1:]):
                self._carried = None
                return [*self._actions(route), DROP]
        return []

    def _within_reach(self, blocked: Spot | None) -> int:
        """How many spots the agent could walk to, were all doors unlocked."""
        seen = {self._at[:2]}
        for x, y in (reached := list(seen)):
            for dx, dy in WAYS:
                to = (x + dx, y + dy)
                if to not in seen and to != blocked and self._cell(to)[0] in (EMPTY, GOAL, DOOR):
                    seen.add(to)
                    reached.append(to)
        return len(seen)
