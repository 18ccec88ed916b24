"""Mirroring of single samples in ``__getitem__`` that becomes one of whole batches, in the loop that trains on them.

Written only where the file shows that nothing else draws from the data set: it is made once, goes into one DataLoader
with torch's own collating, and that loader is gone over by one loop, which trains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.patch.source import Source, Unwritable, dotted
from hotlap.patch.training import trains

if TYPE_CHECKING:
    import libcst as cst

    from hotlap.patch.changes import Changes
    from hotlap.records.edits import Edit

__all__ = ["flip_batches"]

_DRAWS = {"random.random", "np.random.rand", "np.random.random", "numpy.random.rand", "numpy.random.random"}
_LAST_TWO = {"-1", "-2"}
"""Dimensions that are the same in a sample and in a batch."""


def flip_batches(source: Source, changes: Changes, edit: Edit) -> None:
    """``if random.random() < P: x = x.flip(-1)`` before the return of ``__getitem__`` goes into the training loop."""
    import libcst as cst

    here: Any = source.statement(edit.line)
    branch = next((n for n in (here, *source.parents(here)) if isinstance(n, cst.If)), None)
    function = source.function(here)
    kind = next((p for p in source.parents(function) if isinstance(p, cst.ClassDef)), None) if function else None
    if branch is None or kind is None or function is None or function.name.value != "__getitem__":
        raise Unwritable("no `if` of a data set's __getitem__ stands there")
    share = _share(source, branch)
    name, dimension = _flip(source, branch)
    place = _place_in_return(source, branch, name)
    loop = _training_loop(source, kind.name.value)
    batch = _batch_name(loop, place)
    if len(branch_block(source, branch)) < 2 or not isinstance(loop.body, cst.IndentedBlock):
        raise Unwritable("nothing would be left in its block")
    first: Any = loop.body.body[0]
    if not isinstance(first, cst.SimpleStatementLine | cst.For | cst.While | cst.If):
        raise Unwritable("the loop begins with no plain statement")
    changes.removed.add(branch)
    changes.before[first].append(f"{batch} = flip_some({batch}, {share}, {dimension})")


def branch_block(source: Source, branch: cst.If) -> list[Any]:
    """The statements among which it stands."""
    import libcst as cst

    parent = next(source.parents(branch))
    if not isinstance(parent, cst.IndentedBlock):
        raise Unwritable("its `if` is a branch of another")
    return list(parent.body)


def _share(source: Source, branch: cst.If) -> str:
    """The share of samples, as it is written: of ``draw() < P`` or ``P > draw()``."""
    import libcst as cst

    test = branch.test
    if branch.orelse is None and isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        left, right = test.left, test.comparisons[0].comparator
        if isinstance(test.comparisons[0].operator, cst.GreaterThan | cst.GreaterThanEqual):
            left, right = right, left
        elif not isinstance(test.comparisons[0].operator, cst.LessThan | cst.LessThanEqual):
            left = right
        if _draws(left) and isinstance(right, cst.Float | cst.Integer):
            return source.code(right)
    raise Unwritable("its condition is no plain draw against a number")


def _draws(node: cst.CSTNode) -> bool:
    import libcst as cst

    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "item":
        node = node.func.value
    if not isinstance(node, cst.Call):
        return False
    name = dotted(node.func)
    one = len(node.args) == 1 and isinstance(a := node.args[0].value, cst.Integer) and a.value == "1"
    return (name in _DRAWS and not node.args) or (name == "torch.rand" and one)


def _flip(source: Source, branch: cst.If) -> tuple[str, str]:
    """(name, dimension) of the branch's only statement, ``x = torch.flip(x, [-1])`` or ``x = x.flip(-1)``."""
    import libcst as cst

    wrong = Unwritable("it does more than `x = torch.flip(x, [-1])`")
    block = branch.body
    lines = block.body if isinstance(block, cst.IndentedBlock) else [block]
    line: Any = lines[0]
    small: Any = getattr(line, "body", ())
    if len(lines) != 1 or len(small) != 1 or not isinstance(small[0], cst.Assign) or len(small[0].targets) != 1:
        raise wrong
    name, call = dotted(small[0].targets[0].target), small[0].value
    if name is None or "." in name or not isinstance(call, cst.Call):
        raise wrong
    args = list(call.args)
    if dotted(call.func) == "torch.flip" and args and source.code(args[0].value) == name:
        args = args[1:]
    elif dotted(call.func) != f"{name}.flip":
        raise wrong
    if len(args) != 1 or (args[0].keyword is not None and args[0].keyword.value != "dims"):
        raise wrong
    value = args[0].value
    if isinstance(value, cst.List | cst.Tuple):
        if len(value.elements) != 1:
            raise wrong
        value = value.elements[0].value
    if source.code(value) not in _LAST_TWO:
        raise Unwritable("it mirrors along another dimension than the last two")
    return name, source.code(value)


def _place_in_return(source: Source, branch: cst.If, name: str) -> int | None:
    """Where the sample's tensor stands in what is returned right after the branch; None: it is all of it."""
    import libcst as cst

    block = branch_block(source, branch)
    after: Any = block[block.index(branch) + 1] if block.index(branch) + 1 < len(block) else None
    small: Any = getattr(after, "body", ())
    if not isinstance(after, cst.SimpleStatementLine) or len(small) != 1 or not isinstance(small[0], cst.Return):
        raise Unwritable("more is done to the sample after it")
    value = small[0].value
    uses = [n for n in source.inside(after, cst.Name) if n.value == name]
    if len(uses) == 1 and value is uses[0]:
        return None
    if isinstance(value, cst.Tuple) and len(uses) == 1:
        for place, element in enumerate(value.elements):
            if element.value is uses[0]:
                return place
    raise Unwritable(f"{name} is not returned as it is")


def _training_loop(source: Source, kind: str) -> cst.For:
    """The one loop over the one loader of the one data set of that class."""
    import libcst as cst

    made = [c for c in source.of_type(cst.Call) if dotted(c.func) == kind]
    if len(made) != 1 or len(_names(source, kind)) != 1:
        raise Unwritable(f"{kind} is made, or spoken of, more than once in this file")
    loader = _call_around(source, made[0])
    if loader is None:
        loader = _call_around(source, _only_use(source, _assigned_name(source, made[0])))
    if loader is None or (dotted(loader.func) or "").rpartition(".")[2] != "DataLoader":
        raise Unwritable(f"{kind} does not go straight into a DataLoader")
    for arg in loader.args:
        word = arg.keyword.value if arg.keyword is not None else ""
        if arg.star or word in ("collate_fn", "batch_sampler") or (word == "batch_size" and _is_none(arg.value)):
            raise Unwritable("its DataLoader puts batches together in a way of its own")
    if len([a for a in loader.args if a.keyword is None]) > 3:
        raise Unwritable("its DataLoader has many arguments without names")
    here = _loop_over(source, loader)
    loop = here if here is not None else _loop_over(source, _only_use(source, _assigned_name(source, loader)))
    if loop is None or not trains(source, loop):
        raise Unwritable("the `for` that trains on it is not seen in this file")
    return loop


def _names(source: Source, name: str) -> list[Any]:
    """Where the name is spoken of: not where it is defined or assigned, and not in ``len(name)``."""
    import libcst as cst

    found = []
    for node in source.of_type(cst.Name):
        parent = next(source.parents(node))
        own = isinstance(parent, cst.ClassDef) and parent.name is node
        own = own or (isinstance(parent, cst.Arg) and parent.keyword is node)
        if node.value != name or own or isinstance(parent, cst.AssignTarget):
            continue
        around = _call_around(source, node)
        if around is None or dotted(around.func) != "len":
            found.append(node)
    return found


def _only_use(source: Source, name: str) -> Any:
    uses = _names(source, name)
    if len(uses) != 1:
        raise Unwritable(f"{name} is used in {len(uses)} places of this file")
    return uses[0]


def _assigned_name(source: Source, call: cst.Call) -> str:
    import libcst as cst

    parent = next(source.parents(call))
    if isinstance(parent, cst.Assign) and len(parent.targets) == 1:
        name = dotted(parent.targets[0].target)
        if name is not None and "." not in name:
            return name
    raise Unwritable(f"what becomes of {dotted(call.func)}(…) is not seen")


def _call_around(source: Source, node: Any) -> cst.Call | None:
    """The call of which the node is an argument."""
    import libcst as cst

    argument = next(source.parents(node))
    call = next(source.parents(argument)) if isinstance(argument, cst.Arg) else None
    return call if isinstance(call, cst.Call) else None


def _loop_over(source: Source, node: Any) -> cst.For | None:
    """The ``for`` that goes over the node, or over ``enumerate`` of it."""
    import libcst as cst

    around = _call_around(source, node)
    if around is not None and dotted(around.func) == "enumerate" and len(around.args) == 1:
        node = around
    parent = next(source.parents(node))
    return parent if isinstance(parent, cst.For) and parent.iter is node else None


def _batch_name(loop: cst.For, place: int | None) -> str:
    """What the loop calls the batch of that tensor."""
    import libcst as cst

    target: Any = loop.target
    if isinstance(loop.iter, cst.Call) and dotted(loop.iter.func) == "enumerate" and isinstance(target, cst.Tuple):
        target = target.elements[1].value
    if place is not None:
        held = target.elements if isinstance(target, cst.Tuple | cst.List) else ()
        target = held[place].value if place < len(held) else None
    if not isinstance(target, cst.Name):
        raise Unwritable("the loop takes its batch in another form than the sample's")
    return target.value


def _is_none(node: cst.CSTNode) -> bool:
    return dotted(node) == "None"
