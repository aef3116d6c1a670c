# SPDX-License-Identifier: GPL-2.0
"""The gdbstub of a QEMU that runs an x86-64 guest."""
import socket
import time

RDI, RSP, RIP = 5, 7, 16        # of the registers, each 8 bytes, in a reply to 'g'


class Lost(Exception):
    """The guest ended, or did not answer in time."""


class Stub:
    """A connection by gdb's remote serial protocol. The guest is stopped, except in resume()."""

    def __init__(self, file, patience):
        self.file, self.patience = str(file), patience
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(patience)
        self.received = b""

    def connect(self, boot):
        """Wait for the Unix socket, which QEMU, started by the process boot, makes."""
        deadline = time.monotonic() + self.patience
        while self.socket.connect_ex(self.file):
            if boot.poll() is not None or time.monotonic() > deadline:
                raise Lost("QEMU did not start")
            time.sleep(0.1)

    def ask(self, request):
        try:
            self.socket.sendall(b"$%s#%02x" % (request.encode(), sum(request.encode()) % 256))
            return self.reply()
        except TimeoutError:
            raise Lost(f"the guest has not stopped for {self.patience} s") from None
        except ConnectionError:
            raise Lost("the guest ended") from None

    def reply(self):
        while b"#" not in self.received[:-2]:
            more = self.socket.recv(4096)
            if not more:
                raise ConnectionError
            self.received += more
        packet, _, rest = self.received.partition(b"#")
        self.received = rest[2:]
        self.socket.sendall(b"+")
        return packet.lstrip(b"+").removeprefix(b"$").decode()

    def resume(self, how):
        """Let the guest run until a breakpoint stops it, or for one instruction."""
        if not self.ask(how).startswith("T"):
            raise Lost("the guest ended")

    def go_on(self):
        """Run until the next breakpoint; the one that the guest is at does not stop it again."""
        self.resume("s")
        self.resume("c")
        return self.register(RIP)

    def step(self):
        self.resume("s")
        return self.register(RIP)

    def register(self, number):
        return int.from_bytes(bytes.fromhex(self.ask("g"))[number * 8:][:8], "little")

    def memory(self, address, size):
        """The bytes, up to the first page that cannot be read."""
        found = self.ask(f"m{address:x},{size:x}")
        if found.startswith("E"):
            found = self.ask(f"m{address:x},{min(size, -address % 4096):x}")
        if found.startswith("E"):
            raise Lost(f"the guest has no memory at {address:#x}")
        return bytes.fromhex(found)

    def word(self, address):
        return int.from_bytes(self.memory(address, 8), "little")

    def string(self, address):
        return self.memory(address, 64).partition(b"\0")[0].decode(errors="replace").strip()

    # In hardware, since kprobes and ftrace write to the text.
    def set_breakpoint(self, address):
        self.ask(f"Z1,{address:x},1")

    def clear_breakpoint(self, address):
        self.ask(f"z1,{address:x},1")

    def detach(self):
        """Let the guest run on, without breakpoints."""
        self.ask("D")
        self.socket.close()

    def kill(self):
        """End QEMU."""
        try:
            self.socket.sendall(b"\x03")
            time.sleep(0.5)
            self.socket.sendall(b"$k#6b")
        except OSError:
            pass
        self.socket.close()
