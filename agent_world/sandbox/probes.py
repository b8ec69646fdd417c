"""Attacks on a sandbox from the inside, each a function that returns whether it worked; raising means it did not.

This file runs as it stands in two places: in a session, where nothing may work, and in a plain process, where
everything should, as a control that the attack is real. So it imports the standard library only. What an attack needs
to know is in `facts` (selftest.py): planted secrets, a listener, a victim.
"""

# ruff: noqa: D103 - the name of an attack says what it does
import ctypes
import glob
import json
import mmap
import os
import resource
import socket
import subprocess
import sys
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
MEGABYTE = 1 << 20


def reads_a_host_file(facts):
    with open(facts["secret_file"]) as file:
        return facts["secret"] in file.read()


def reads_the_accounts(facts):
    with open("/etc/passwd") as file:
        return "root:" in file.read()


def lists_the_programs_of_the_host(facts):
    return len(os.listdir("/usr/bin")) > 50


def writes_a_host_file(facts):
    with open(os.path.join(facts["open_folder"], "written"), "w") as file:
        return file.write("x") == 1


def reads_the_environment(facts):
    return facts["secret"] in str(dict(os.environ))


def reads_the_environment_of_any_process(facts):
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                if facts["secret"].encode() in file.read():
                    return True
        except OSError:
            continue
    return False


def sees_other_processes(facts):
    return len(glob.glob("/proc/[0-9]*")) > 1


def signals_a_host_process(facts):
    os.kill(facts["victim"], 0)
    return True


def connects_to_a_host_port(facts):
    socket.create_connection(("127.0.0.1", facts["port"]), timeout=2).close()
    return True


def connects_to_an_abstract_socket(facts):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + facts["abstract"])
    return True


def opens_a_datagram_socket(facts):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        return sender.sendto(b"x", ("127.0.0.1", facts["port"])) == 1


def opens_a_netlink_socket(facts):
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()
    return True


def passes_a_descriptor_on(facts):
    ends = socket.socketpair()
    return socket.send_fds(ends[0], [b"x"], [0]) == 1


def starts_a_program(facts):
    return subprocess.run(["/bin/true"]).returncode == 0


def spawns_without_fork(facts):
    pid = os.posix_spawn("/bin/true", ["true"], {})
    return os.waitpid(pid, 0)[1] == 0


def forks(facts):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return os.waitpid(pid, 0)[0] == pid


def starts_a_thread(facts):
    done = []
    thread = threading.Thread(target=done.append, args=(1,))
    thread.start()
    thread.join()
    return done == [1]


def runs_a_script_from_its_folder(facts):
    with open("script", "w") as file:
        file.write("#!/bin/sh\nexit 0\n")
    os.chmod("script", 0o755)
    return subprocess.run(["./script"]).returncode == 0


def makes_a_user_namespace(facts):
    return LIBC.unshare(0x10000000) == 0


def mounts_a_file_system(facts):
    # Root may mount at once; anybody else in a namespace of his own.
    if os.geteuid() != 0 and LIBC.unshare(0x10000000 | 0x20000) != 0:
        return False
    if os.geteuid() == 0 and LIBC.unshare(0x20000) != 0:
        return False
    LIBC.mount(b"none", b"/", None, ctypes.c_ulong(16384 | 1 << 18), None)
    return LIBC.mount(b"tmpfs", os.getcwd().encode(), b"tmpfs", ctypes.c_ulong(0), None) == 0


def lets_itself_be_traced(facts):
    return LIBC.ptrace(0, 0, None, None) == 0


def reads_memory_by_process_id(facts):
    source, target = ctypes.create_string_buffer(b"x", 8), ctypes.create_string_buffer(8)
    local = (ctypes.c_size_t * 2)(ctypes.addressof(target), 8)
    remote = (ctypes.c_size_t * 2)(ctypes.addressof(source), 8)
    return LIBC.process_vm_readv(os.getpid(), local, 1, remote, 1, 0) == 8


def adds_a_kernel_key(facts):
    return LIBC.syscall(248, b"user", b"agent-world-probe", b"v", ctypes.c_size_t(1), -2) > 0


def sets_up_io_uring(facts):
    return LIBC.syscall(425, 4, ctypes.create_string_buffer(200)) >= 0


def makes_an_anonymous_file(facts):
    return os.memfd_create("probe") > 0


def makes_shared_memory(facts):
    number = LIBC.shmget(0, 4096, 0o1600)
    return number >= 0 and LIBC.shmctl(number, 0, None) == 0


def makes_a_link_out(facts):
    os.symlink(facts["secret_file"], "link")
    with open("link") as file:
        return facts["secret"] in file.read()


def makes_a_pipe_file(facts):
    os.mkfifo("fifo")
    return True


def calls_the_old_system_call_table(facts):
    # mov eax, 20 (getpid of the 32-bit table); int 0x80; ret
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex("b814000000cd80c3"))
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))() == os.getpid()


def writes_a_setting_of_the_kernel(facts):
    with open("/proc/self/oom_score_adj", "w") as file:
        return file.write("500") == 3


def changes_its_limits(facts):
    resource.setrlimit(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE))
    return True


def chooses_its_processors(facts):
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    return True


def takes_two_gigabytes(facts):
    return len(mmap.mmap(-1, 2048 * MEGABYTE)) > 0


def writes_a_huge_file(facts):
    with open("huge", "wb") as file:
        for _ in range(96):
            file.write(b"x" * MEGABYTE)
            file.flush()
    os.unlink("huge")
    return True


def makes_thousands_of_files(facts):
    for number in range(1500):
        os.mkdir(f"folder{number}")
    return True


def opens_hundreds_of_files(facts):
    return len([os.open(".", os.O_RDONLY) for _ in range(400)]) == 400


def writes_outside_its_folder(facts):
    for folder in ("/", "/dev", "/dev/shm", "/tmp", "/var/tmp", "/run", "/guest", "/proc", "/usr/lib"):
        path = os.path.join(folder, f"agent-world-probe-{facts['victim']}")
        try:
            with open(path, "w"):
                pass
            os.unlink(path)
            return True
        except OSError:
            continue
    return False


def finds_an_open_descriptor(facts):
    for descriptor in range(1024):
        try:
            if facts["secret"].encode() in os.pread(descriptor, 4096, 0):
                return True
        except OSError:
            continue
    return False


def leaves_a_message(facts):
    """Half of an attack: the other session looks for it."""
    left = False
    for folder in (".", "/", "/dev", "/dev/shm", "/tmp", "/var/tmp", "/guest"):
        try:
            with open(os.path.join(folder, facts["message"]), "w") as file:
                left = bool(file.write("x"))
        except OSError:
            continue
    return left


def finds_a_message(facts):
    folders = (".", "/", "/dev", "/dev/shm", "/tmp", "/var/tmp", "/guest")
    return any(os.path.exists(os.path.join(folder, facts["message"])) for folder in folders)


def run(name, facts):
    """Whether the attack worked, and what it met."""
    try:
        worked, detail = bool(globals()[name](facts)), ""
    except BaseException as error:
        worked, detail = False, f"{type(error).__name__}: {error}"
    return {"worked": worked, "detail": detail or os.strerror(ctypes.get_errno())}


def run_each(names, facts):
    """Every attack in a process and a folder of its own."""
    return {name: run_apart(name, facts) for name in names}


def run_apart(name, facts):
    """`run` in a child, which may die of it."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.mkdir(name)
        os.chdir(name)
        os.write(writing, json.dumps(run(name, facts)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as result:
        text = result.read()
    os.waitpid(pid, 0)
    return json.loads(text or '{"worked": false, "detail": "it died"}')


if __name__ == "__main__":
    print(json.dumps(run_each(sys.argv[2:], json.loads(sys.argv[1]))))
