"""Attacks over sockets."""

# ruff: noqa: D103 - the name of an attack says what it does
import os
import socket


def connects_to_a_host_port(facts):
    socket.create_connection(("127.0.0.1", facts["port"]), timeout=2).close()
    return True


def connects_to_an_abstract_socket(facts):
    return _connects("\0" + facts["abstract"])


def connects_to_a_named_socket(facts):
    return _connects(facts["named"])


def _connects(address):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(address)
    return True


def listens_to_the_network(facts):
    socket.create_server(("127.0.0.1", 0)).close()
    return True


def resolves_a_name(facts):
    return len(socket.getaddrinfo("localhost", 80)) > 0


def opens_a_datagram_socket(facts):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        return sender.sendto(b"x", ("127.0.0.1", facts["port"])) == 1


def opens_a_netlink_socket(facts):
    return _opens(socket.AF_NETLINK, socket.SOCK_RAW)


def opens_a_packet_socket(facts):
    return _opens(socket.AF_PACKET, socket.SOCK_RAW)


def opens_a_socket_to_the_hypervisor(facts):
    return _opens(socket.AF_VSOCK, socket.SOCK_STREAM)


def _opens(family, kind):
    socket.socket(family, kind, 0).close()
    return True


def passes_a_descriptor_on(facts):
    ends = socket.socketpair()
    return socket.send_fds(ends[0], [b"x"], [0]) == 1


def lists_the_interfaces(facts):
    return len(socket.if_nameindex()) > 0 and os.path.exists("/sys/class/net")
