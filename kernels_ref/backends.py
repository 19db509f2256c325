"""Where kernels run: NumPy on the host, or CuPy on a CUDA device, with what each allocates.

Nothing here imports CuPy before it is asked for. On a device, every request to CuPy's memory pool
is counted by a hook: the bytes asked for, and beside them what the pool rounds them up to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from routeproof.spec.errors import InputError

from .namespace import Array, Namespace

__all__ = ["Backend", "Root", "load"]

_ALIGNMENT = 4096  # of the root: at least what cudaMalloc gives


@dataclass(frozen=True, slots=True)
class Root:
    """One allocation: its bytes, how many were asked for, and how many the pool took for them."""

    memory: Array
    requested: int
    taken: int


@dataclass(frozen=True, slots=True)
class Backend:
    """An array library with its device, driver and a way to allocate and to read back."""

    name: str
    device: str
    xp: Namespace
    allocate: Callable[[int], Root]
    to_host: Callable[[Array], Array]


def load(name: str) -> Backend:
    """The backend of that name: `numpy` or `cupy`.

    Raises:
        InputError: CuPy is not installed, or there is no CUDA device.
    """
    return _numpy() if name == "numpy" else _cupy()


def _numpy() -> Backend:
    def allocate(size: int) -> Root:
        whole = np.empty(size + _ALIGNMENT, np.uint8)
        start = -whole.ctypes.data % _ALIGNMENT
        return Root(whole[start : start + size], size, size)

    xp = cast("Namespace", np)
    return Backend("numpy", f"host, NumPy {np.__version__}", xp, allocate, np.asarray)


def _cupy() -> Backend:
    try:
        import cupy  # noqa: PLC0415 - a gigabyte that only this backend needs
    except ImportError as error:
        first = str(error).strip().partition("\n")[0]
        raise InputError(f"--kernels cupy: CuPy cannot be imported: {first}") from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # the driver's own error types differ between versions
        first = str(error).strip().partition("\n")[0]
        raise InputError(f"--kernels cupy: no CUDA device: {first}") from error
    if not count:
        raise InputError("--kernels cupy: no CUDA device")
    return Backend("cupy", _described(cupy), cupy, _allocator(cupy), cupy.asnumpy)


def _described(cupy: Any) -> str:  # noqa: ANN401 - a library without types
    device = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    driver = cupy.cuda.runtime.driverGetVersion()
    return f"{device}, driver API {driver // 1000}.{driver % 1000 // 10}, CuPy {cupy.__version__}"


def _allocator(cupy: Any) -> Callable[[int], Root]:  # noqa: ANN401 - a library without types
    class Counting(cupy.cuda.MemoryHook):  # type: ignore[misc] # the base is untyped
        """Every request to the pool, and what the pool took for it."""

        name = "routeproof"

        def __init__(self) -> None:
            self.requests: list[tuple[int, int]] = []

        def malloc_postprocess(self, **said: int) -> None:
            self.requests.append((said["size"], said["mem_size"]))

    def allocate(size: int) -> Root:
        with Counting() as hook:
            memory = cupy.empty(size, dtype=cupy.uint8)
        requested = sum(asked for asked, _ in hook.requests)
        return Root(memory, requested, sum(taken for _, taken in hook.requests))

    return allocate
