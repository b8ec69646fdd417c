"""Attacks on other processes, and by starting some."""

# ruff: noqa: D103 - the name of an attack says what it does
import ctypes
import glob
import os
import resource
import signal
import subprocess
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
ATTACH, DETACH = 0x4206, 17


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


def opens_the_memory_of_a_process(facts):
    with open("/proc/self/mem", "r+b"):
        return True


def sees_other_processes(facts):
    return len(glob.glob("/proc/[0-9]*")) > 1


def signals_a_host_process(facts):
    os.kill(facts["victim"], 0)
    return True


def signals_its_maker(facts):
    # 0 is the maker's number when he is out of sight; to a signal it means oneself.
    if os.getppid() != 0:
        os.kill(os.getppid(), 0)
    return os.getppid() != 0


def signals_everybody(facts):
    os.kill(-1, 0)
    return True


def traces_a_host_process(facts):
    if LIBC.ptrace(ATTACH, facts["victim"], None, None) != 0:
        return False
    os.kill(facts["victim"], signal.SIGSTOP)
    os.waitpid(facts["victim"], 0x40000000)
    LIBC.ptrace(DETACH, facts["victim"], None, None)
    os.kill(facts["victim"], signal.SIGCONT)
    return True


def lets_itself_be_traced(facts):
    return LIBC.ptrace(0, 0, None, None) == 0


def reads_memory_by_process_id(facts):
    source, target = ctypes.create_string_buffer(b"x", 8), ctypes.create_string_buffer(8)
    local = (ctypes.c_size_t * 2)(ctypes.addressof(target), 8)
    remote = (ctypes.c_size_t * 2)(ctypes.addressof(source), 8)
    return LIBC.process_vm_readv(os.getpid(), local, 1, remote, 1, 0) == 8


def holds_a_process(facts):
    return os.pidfd_open(os.getpid()) >= 0


def takes_a_descriptor_of_a_host_process(facts):
    return LIBC.syscall(438, os.pidfd_open(facts["victim"]), 0, 0) >= 0


def compares_with_a_host_process(facts):
    return LIBC.syscall(312, os.getpid(), facts["victim"], 1, 0, 0) >= 0


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


def runs_a_program_by_descriptor(facts):
    program = os.open("/usr/bin/python3.11", os.O_RDONLY)
    pid = os.fork()
    if pid == 0:
        arguments = (ctypes.c_char_p * 5)(b"python3.11", b"-I", b"-c", b"", None)
        LIBC.syscall(322, program, b"", arguments, (ctypes.c_char_p * 1)(None), 0x1000)
        os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def starts_a_session_of_terminals(facts):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if LIBC.setsid() > 0 else 1)
    return os.waitpid(pid, 0)[1] == 0


def becomes_root(facts):
    os.setuid(0)
    return True


def changes_its_limits(facts):
    resource.setrlimit(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE))
    return True


def chooses_its_processors(facts):
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    return True


def chooses_its_priority(facts):
    os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))
    return True


def chooses_its_scheduler(facts):
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    return True


def chooses_its_place_at_the_disk(facts):
    return LIBC.syscall(251, 1, 0, 2 << 13 | 4) == 0
