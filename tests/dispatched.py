"""Which operations of torch a piece of code calls, and those of them that wait for the device."""

from collections.abc import Callable

from torch.utils._python_dispatch import TorchDispatchMode

ON_THE_HOST = {
    *("aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select"),
    *("aten::equal", "aten::is_nonzero", "aten::lift_fresh"),
}
"""The last is how a number of Python's becomes a tensor."""


def called_by(run: Callable[[], object]) -> set[str]:
    called: set[str] = set()

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            called.add(func._schema.name)
            return func(*args, **(kwargs or {}))

    with Watch():
        run()
    return called
