#!/usr/bin/python3
"""listener: stand-ins on this machine for what an agent must not reach: TCP, UDP and a local socket.

usage: listener.py SOCKET. Prints "TCP-PORT UDP-PORT" once it listens, answers all comers, ends when its
standard input ends. Loopback only.
"""
import os
import select
import socket
import sys

tcp = socket.create_server(("127.0.0.1", 0))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 0))
local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
local.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
local.listen()
print(tcp.getsockname()[1], udp.getsockname()[1], flush=True)
while True:
    ready, _, _ = select.select([sys.stdin, tcp, udp, local], [], [])
    if sys.stdin in ready and not os.read(0, 1):
        break
    for server in (tcp, local):
        if server in ready:
            connection, _ = server.accept()
            try:
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nhere\n")
            except OSError:
                pass
            connection.close()
    if udp in ready:
        data, peer = udp.recvfrom(512)
        udp.sendto(data, peer)
