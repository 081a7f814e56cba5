"""A file on a node, asked about and read in part by short commands."""

from console.nodes.shell import Answer
from console.nodes.ssh import Node

SLOW_BYTES_PER_SECOND = 20e6
"""At least so fast a node reads and hashes, and a link carries, what has to be waited for."""

_PATH = 'path=$1; case $path in "~/"*) path=$HOME/${path#"~/"} ;; esac\n'
_SIZE = """
stat -Lc "%s" "$path"
"""
_READ = """
exec 3<"$path" || exit 1
[ "$(stat -Lc %i /proc/self/fd/3)" = "$2" ] || { echo "the file was replaced" >&2; exit 1; }
tail -c "+$(($3 + 1))" <&3 | head -c "$4"
"""
_SHA256 = """
head -c "$2" "$path" | sha256sum
"""


class RemoteFile:
    """Its path may begin with `~/`. Every method raises NodeError."""

    def __init__(self, node: Node, path: str) -> None:
        self.node = node
        self.path = path

    async def size(self) -> int:
        """Its length in bytes."""
        return int((await self._run(_SIZE, timeout=30)).text)

    async def read(self, inode: int, start: int, count: int) -> bytes:
        """Up to `count` bytes from `start` on; an error when the file is another one than `inode`."""
        return (await self._run(_READ, inode, start, count, timeout=120)).stdout

    async def sha256(self, length: int) -> str:
        """Of its first `length` bytes."""
        answer = await self._run(_SHA256, length, timeout=60 + length / SLOW_BYTES_PER_SECOND)
        return answer.text.split()[0]

    async def _run(self, script: str, *numbers: int, timeout: float) -> Answer:
        return await self.node.run(_PATH + script, args=(self.path, *map(str, numbers)), timeout=timeout)
