# SPDX-License-Identifier: MIT
"""procfs.py: what the kernel tells about another process.

Job        Resident memory, descriptors, context switches, CPU ticks, threads' states, children.
Invariants Reads only. A process that is gone raises ProcessLookupError (FileNotFoundError is translated).
"""

import os
import resource


def _read(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read().decode("ascii", "replace")
    except FileNotFoundError as error:
        raise ProcessLookupError(f"process {pid} is gone") from error


def _status_field(text, field):
    for line in text.splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise ProcessLookupError(f"no {field}: the process has ended")


def rss_bytes(pid):
    return _status_field(_read(pid, "status"), "VmRSS") * 1024


def address_space_bytes(pid):
    return _status_field(_read(pid, "status"), "VmSize") * 1024


def peak_rss_bytes(pid):
    return _status_field(_read(pid, "status"), "VmHWM") * 1024


def descriptors(pid):
    """Descriptor number -> what it is, as the kernel names it."""
    result = {}
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")
    except FileNotFoundError as error:
        raise ProcessLookupError(f"process {pid} is gone") from error
    for number in numbers:
        try:
            result[int(number)] = os.readlink(f"/proc/{pid}/fd/{number}")
        except FileNotFoundError:
            continue  # closed since the folder was listed
    return result


def threads(pid):
    return [int(name) for name in os.listdir(f"/proc/{pid}/task")]


def context_switches(pid):
    """Voluntary and involuntary, of all threads."""
    total = 0
    for thread in threads(pid):
        text = _read(pid, f"task/{thread}/status")
        total += _status_field(text, "voluntary_ctxt_switches") + _status_field(text, "nonvoluntary_ctxt_switches")
    return total


def _stat_fields(text):
    """Fields after the command name, which may itself hold spaces and brackets; [0] is the state."""
    return text[text.rindex(")") + 2:].split()


def cpu_ticks(pid):
    fields = _stat_fields(_read(pid, "stat"))
    return int(fields[11]) + int(fields[12])


def all_threads_sleep(pid):
    return all(_stat_fields(_read(pid, f"task/{thread}/stat"))[0] == "S" for thread in threads(pid))


def children(pid):
    result = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if int(_stat_fields(_read(int(name), "stat"))[1]) == pid:
                    result.append(int(name))
            except ProcessLookupError:
                continue  # ended since the folder was listed
    return result


def raise_descriptor_limit():
    """Thousands of clients live in one test process: as many descriptors as the machine allows."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
