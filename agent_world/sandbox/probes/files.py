"""Attacks on the files of the host."""

# ruff: noqa: D103 - the name of an attack says what it does
import ctypes
import fcntl
import os
import termios

LIBC = ctypes.CDLL(None, use_errno=True)


def reads_a_host_file(facts):
    with open(facts["secret_file"]) as file:
        return facts["secret"] in file.read()


def reads_the_accounts(facts):
    with open("/etc/passwd") as file:
        return "root:" in file.read()


def reads_which_packages_are_installed(facts):
    with open("/var/lib/dpkg/status") as file:
        return "Package:" in file.read(4096)


def reads_the_name_of_the_host(facts):
    return os.uname().nodename == facts["host"]


def reads_the_command_line_of_the_kernel(facts):
    with open("/proc/cmdline") as file:
        return len(file.read()) > 0


def reads_the_table_of_mounts(facts):
    with open("/proc/self/mountinfo") as file:
        return len(file.read()) > 0


def lists_the_hardware(facts):
    return len(os.listdir("/sys/class")) > 0


def lists_the_homes(facts):
    return len(os.listdir("/home")) >= 0


def lists_the_programs_of_the_host(facts):
    return len(os.listdir("/usr/bin")) > 50


def lists_what_the_operator_installed(facts):
    return len(os.listdir("/usr/local")) > 0


def writes_a_host_file(facts):
    with open(os.path.join(facts["open_folder"], "written"), "w") as file:
        return file.write("x") == 1


def writes_to_the_root(facts):
    return _writes(facts, "/")


def writes_to_the_devices(facts):
    return _writes(facts, "/dev")


def writes_to_shared_memory(facts):
    return _writes(facts, "/dev/shm")


def writes_to_the_temporary_folder(facts):
    return _writes(facts, "/tmp")


def writes_to_the_libraries(facts):
    return _writes(facts, "/usr/lib")


def writes_elsewhere(facts):
    return any(_writes(facts, folder) for folder in ("/var/tmp", "/run", "/guest", "/proc", "/usr", "/etc"))


def _writes(facts, folder):
    path = os.path.join(folder, f"agent-world-probe-{facts['victim']}")
    try:
        with open(path, "w"):
            pass
        os.unlink(path)
    except OSError:
        return False
    return True


def makes_a_link_out(facts):
    os.symlink(facts["secret_file"], "link")
    with open("link") as file:
        return facts["secret"] in file.read()


def makes_a_pipe_file(facts):
    os.mkfifo("fifo")
    return True


def makes_a_device(facts):
    os.mknod("device", 0o600 | 0o020000, os.makedev(1, 3))
    return True


def watches_a_folder(facts):
    return LIBC.inotify_init1(0) >= 0


def watches_the_whole_system(facts):
    return LIBC.fanotify_init(0, 0) >= 0


def opens_a_terminal(facts):
    return os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY) >= 0


def types_into_a_terminal(facts):
    _, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSTI, b"x")
    return True


def finds_an_open_descriptor(facts):
    for descriptor in range(1024):
        try:
            if facts["secret"].encode() in os.pread(descriptor, 4096, 0):
                return True
        except OSError:
            continue
    return False
