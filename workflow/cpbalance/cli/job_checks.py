"""What a job looks at before it spends time on a device."""

import logging
import tempfile
from pathlib import Path

from cpbalance.errors import InputError
from cpbalance.timing.device import Device

logger = logging.getLogger("cpbalance")

# Journal and result of a long run take a few MiB.
ROOM_BYTES = 4 << 20


def check_writable(folder: Path) -> None:
    """Raise :class:`~cpbalance.errors.InputError` unless a few MiB can be written to ``folder``."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".room-", suffix=".partial") as file:
            file.write(bytes(ROOM_BYTES))
            file.flush()
    except OSError as error:
        raise InputError(
            f"{folder}: {error.strerror}: results need {ROOM_BYTES >> 20} MiB there; free space or "
            f"run in a folder of your own"
        ) from error


def expect_device(device: Device, expected: str | None, strict: bool) -> None:
    """Warn, or raise if strict, where the device is not the one that the config names."""
    if strict and expected is None:
        raise InputError("--strict-device is given without a device: name it with --expect-device")
    if expected is None or expected.casefold() in device.name.casefold():
        return
    message = f"device is {device.name}, but {expected} is expected"
    if strict:
        raise InputError(f"{message}; run on it, change the expected device, or drop strict_device")
    logger.info("cpbalance time: warning: %s", message)
