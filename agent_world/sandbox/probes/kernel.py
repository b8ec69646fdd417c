"""Attacks on the kernel, by calls that no tool needs."""

# ruff: noqa: D103 - the name of an attack says what it does
import ctypes
import mmap
import os

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_MOUNTS, NEW_UTS, NEW_USER = 0x20000, 0x4000000, 0x10000000
SIGCHLD = 17


def makes_a_user_namespace(facts):
    return LIBC.unshare(NEW_USER) == 0


def clones_into_a_namespace(facts):
    return _child(LIBC.syscall(56, ctypes.c_ulong(NEW_USER | SIGCHLD), None, None, None, None))


def clones_into_a_namespace_by_the_newer_call(facts):
    return _child(LIBC.syscall(435, (ctypes.c_uint64 * 11)(NEW_USER, 0, 0, 0, SIGCHLD), 88))


def _child(pid):
    if pid == 0:
        os._exit(0)
    return pid > 0 and os.waitpid(pid, 0)[0] == pid


def joins_a_namespace(facts):
    return LIBC.setns(os.open("/proc/self/ns/uts", os.O_RDONLY), 0) == 0


def mounts_a_file_system(facts):
    _may_mount()
    LIBC.mount(b"none", b"/", None, ctypes.c_ulong(16384 | 1 << 18), None)
    return LIBC.mount(b"tmpfs", os.getcwd().encode(), b"tmpfs", ctypes.c_ulong(0), None) == 0


def opens_a_file_system(facts):
    _may_mount()
    return LIBC.syscall(430, b"tmpfs", 0) >= 0


def takes_a_tree_of_files(facts):
    _may_mount()
    return LIBC.syscall(428, -100, b"/", 1) >= 0


def changes_its_root(facts):
    _may_mount()
    return LIBC.chroot(b".") == 0


def changes_the_name_of_its_host(facts):
    return LIBC.unshare(NEW_UTS if os.geteuid() == 0 else NEW_UTS | NEW_USER) == 0 and LIBC.sethostname(b"evil", 4) == 0


def _may_mount():
    # Root may mount at once; anybody else in a namespace of his own.
    LIBC.unshare(NEW_MOUNTS if os.geteuid() == 0 else NEW_MOUNTS | NEW_USER)


def takes_the_handle_of_a_file(facts):
    handle = ctypes.create_string_buffer((128).to_bytes(4, "little"), 136)
    return LIBC.name_to_handle_at(-100, b".", handle, ctypes.byref(ctypes.c_int()), 0) == 0


def adds_a_kernel_key(facts):
    return LIBC.syscall(248, b"user", b"agent-world-probe", b"v", ctypes.c_size_t(1), -2) > 0


def finds_the_keys_of_its_session(facts):
    return LIBC.syscall(250, 0, -3, 0) > 0


def sets_up_io_uring(facts):
    return LIBC.syscall(425, 4, ctypes.create_string_buffer(200)) >= 0


def makes_a_map_for_kernel_programs(facts):
    return LIBC.syscall(321, 0, (ctypes.c_uint32 * 32)(2, 4, 4, 1), 128) >= 0


def counts_events_of_the_processor(facts):
    software, its_clock = 1, 1
    event = (ctypes.c_uint32 * 32)(software, 128, its_clock)
    return LIBC.syscall(298, event, 0, -1, -1, 0) >= 0


def handles_page_faults_itself(facts):
    return LIBC.syscall(323, 1) >= 0


def makes_an_anonymous_file(facts):
    return os.memfd_create("probe") > 0


def makes_shared_memory(facts):
    number = LIBC.shmget(0, 4096, 0o1600)
    return number >= 0 and LIBC.shmctl(number, 0, None) == 0


def makes_a_semaphore(facts):
    number = LIBC.semget(0, 1, 0o1600)
    return number >= 0 and LIBC.semctl(number, 0, 0) == 0


def makes_a_message_queue(facts):
    number = LIBC.msgget(0, 0o1600)
    return number >= 0 and LIBC.msgctl(number, 0, None) == 0


def makes_a_named_message_queue(facts):
    name = f"agent-world-{facts['victim']}".encode()
    return LIBC.syscall(240, name, os.O_CREAT | os.O_RDWR, 0o600, None) >= 0 and LIBC.syscall(241, name) == 0


def moves_pages_into_a_pipe(facts):
    page = ctypes.create_string_buffer(4096)
    piece = (ctypes.c_size_t * 2)(ctypes.addressof(page), 4096)
    return LIBC.vmsplice(os.pipe()[1], piece, ctypes.c_size_t(1), 0) == 4096


def changes_its_personality(facts):
    return LIBC.personality(ctypes.c_ulong(0x0040000)) >= 0


def reads_its_descriptor_table(facts):
    return LIBC.syscall(154, 0, ctypes.create_string_buffer(64), 64) >= 0


def calls_the_old_system_call_table(facts):
    # mov eax, 20 (getpid of the 32-bit table); int 0x80; ret
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex("b814000000cd80c3"))
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))() == os.getpid()


def writes_a_setting_of_its_own(facts):
    with open("/proc/self/oom_score_adj", "w") as file:
        return file.write("500") == 3


def opens_a_setting_of_the_host(facts):
    with open("/proc/sys/kernel/core_pattern", "r+"):
        return True


def reads_the_log_of_the_kernel(facts):
    return LIBC.klogctl(10, None, 0) > 0


def reaches_the_clock_of_the_host(facts):
    return LIBC.adjtimex(ctypes.create_string_buffer(512)) >= 0
