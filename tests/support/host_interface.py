"""Makes the network interface of a host: `python host_interface.py ADDRESS FD`, run in the host's network.

The other end of the interface, a file descriptor from which frames are read and to which they are written,
goes through the socket FD.
"""

import fcntl
import os
import socket
import struct
import sys

_NAME = b"eth0"
_NETMASK = "255.255.255.0"
_TUNSETIFF = 0x400454CA
_IFF_TAP, _IFF_NO_PI = 0x2, 0x1000
_SIOCSIFFLAGS, _SIOCSIFADDR, _SIOCSIFNETMASK = 0x8914, 0x8916, 0x891C
_IFF_UP = 0x1


def main() -> None:
    address, passed = sys.argv[1], int(sys.argv[2])
    frames = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(frames, _TUNSETIFF, struct.pack("16sH22x", _NAME, _IFF_TAP | _IFF_NO_PI))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for request, value in ((_SIOCSIFADDR, address), (_SIOCSIFNETMASK, _NETMASK)):
            ipv4 = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(value))
            fcntl.ioctl(any_socket, request, struct.pack("16s", _NAME) + ipv4)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", _NAME, _IFF_UP))
    with socket.socket(fileno=passed) as asked:
        socket.send_fds(asked, [b"made"], [frames])


if __name__ == "__main__":
    main()
