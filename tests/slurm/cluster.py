"""A SLURM cluster of several nodes on one machine, for tests: real daemons, stand-in GPUs.

slurmctld, one slurmd a node, slurmdbd with MariaDB and munged, from Debian's packages (SLURM
22.05 on Debian 12, 24.11 on 13), on the loopback interface, without systemd or cgroups. GPUs are
copies of /dev/null: placement, ``--gres`` and ``CUDA_VISIBLE_DEVICES`` are real, CUDA is not.
Timeouts are short, so that a fault shows within a test's patience. ``python -m
tests.slurm.cluster`` starts one to play with and stops it at Ctrl-D.
"""

import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.slurm.machine import ETC, call, install, require, wait_for

HERE = Path(__file__).parent
LOCK = Path("/var/lock/cpbalance-slurm-tests.lock")
# Features tell apart the nodes that stay up, those that a test lets crash, and the one that it
# takes away from its jobs.
GPU_NODES = {
    "gn01": "steady",
    "gn02": "steady",
    "gn03": "fragile",
    "gn04": "fragile",
    "gn05": "contested",
}
CPU_NODES = ("cn01", "cn02")
NODES = (*GPU_NODES, *CPU_NODES)
CPUS, MEMORY_MB, GPUS = 32, 128000, 8  # what each node claims to have
CTLD_PORT, DBD_PORT, SQL_PORT, NODE_PORT = 16817, 16819, 13306, 17001


class Cluster:
    """One cluster under ``root``; use as a context manager."""

    def __init__(self, root: Path, accounting: bool = True) -> None:
        self.root, self.accounting = root, accounting
        self._supervisor: subprocess.Popen | None = None

    # --- life -----------------------------------------------------------------------------------

    def __enter__(self) -> "Cluster":
        require()
        # Ports and /etc/slurm are the machine's: one cluster at a time, others wait.
        self._lock = LOCK.open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        install()
        for name in ("etc", "log", "run", "state", "spool", "dev", "munge", "mysql"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        # munged and MariaDB insist on who may look in.
        (self.root / "munge").chmod(0o700)
        self._supervisor = subprocess.Popen(
            [sys.executable, str(HERE / "supervisor.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            self._start()
        except BaseException as error:
            self.__exit__()
            error.add_note(self.last_words())
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self._supervisor is not None and self._supervisor.stdin is not None
        self._supervisor.stdin.close()
        try:
            status = self._supervisor.wait(90)
        finally:
            self._supervisor.kill()
            for name in ("slurm.conf", "gres.conf", "cgroup.conf", "slurmdbd.conf"):
                if (ETC / name).is_symlink():
                    (ETC / name).unlink()
            self._lock.close()
        if status:
            raise RuntimeError(f"the cluster's supervisor ended with status {status}")

    def last_words(self) -> str:
        """The ends of all logs."""
        logs = sorted((self.root / "log").glob("*"))
        return "\n".join(f"{log.name}: {log.read_text()[-400:].strip()}" for log in logs)

    def _ask(self, **command: object) -> object:
        assert self._supervisor and self._supervisor.stdin and self._supervisor.stdout
        self._supervisor.stdin.write(json.dumps(command) + "\n")
        self._supervisor.stdin.flush()
        answer = json.loads(self._supervisor.stdout.readline())
        if "error" in answer:
            raise RuntimeError(f"{command}: {answer['error']}")
        return answer["ok"]

    def _start(self) -> None:
        self._devices()
        self._configure()
        key = self.root / "munge/munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(1024))
        self.start("munged")
        wait_for("munged", lambda: call("munge", "-S", self._socket, "-n").returncode == 0, 20)
        if self.accounting:
            self._start_accounting()
        self.start("slurmctld")
        for node in NODES:
            self.start(node)
        self.wait_until_ready()

    def _start_accounting(self) -> None:
        sql = self.root / "mysql"
        shutil.chown(sql, "mysql", "mysql")
        if not (sql / "mysql").is_dir():
            done = call(
                *("mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={sql}"),
                *("--auth-root-authentication-method=socket", "--skip-test-db"),
                timeout=120,
            )
            if done.returncode:
                raise RuntimeError(f"mariadb-install-db: {done.stderr[-400:]}")
        self.start("mariadbd")
        client = ("mariadb", "--no-defaults", f"--socket={sql}/sock", "-u", "root", "-e")
        wait_for("mariadbd", lambda: call(*client, "select 1").returncode == 0)
        for host in ("127.0.0.1", "localhost"):
            call(
                *client,
                "create database if not exists slurm_acct;"
                f"create user if not exists 'slurm'@'{host}' identified by 'slurm';"
                f"grant all on slurm_acct.* to 'slurm'@'{host}';",
            ).check_returncode()
        self._start_slurmdbd()
        for what in ("cluster=testbed", "account=lab", "user=root account=lab"):
            call("sacctmgr", "-i", "add", *what.replace("=", " ", 1).split())

    def _start_slurmdbd(self) -> None:
        self.start("slurmdbd")
        wait_for("slurmdbd", lambda: call("sacctmgr", "-n", "show", "cluster").returncode == 0)

    # --- daemons --------------------------------------------------------------------------------

    def _argv(self, name: str) -> Sequence[str]:
        root = self.root
        if name in NODES:
            return ("slurmd", "-D", "-N", name)
        return {
            "munged": (
                *("munged", "--foreground", f"--socket={self._socket}"),
                *(f"--key-file={root}/munge/munge.key", f"--seed-file={root}/munge/seed"),
                *(f"--pid-file={root}/munge/pid", f"--log-file={root}/log/munged.log"),
            ),
            "mariadbd": (
                *("mariadbd", "--no-defaults", "--user=mysql", f"--datadir={root}/mysql"),
                *(f"--socket={root}/mysql/sock", "--bind-address=127.0.0.1", f"--port={SQL_PORT}"),
                *("--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900"),
                "--innodb-flush-log-at-trx-commit=0",
            ),
            "slurmdbd": ("slurmdbd", "-D"),
            "slurmctld": ("slurmctld", "-D"),
        }[name]

    def start(self, name: str) -> None:
        """Start a daemon or, by its node's name, a slurmd."""
        if name in NODES:
            (self.root / "spool" / name).mkdir(exist_ok=True)
        log = self.root / "log" / f"{name}.out"
        self._ask(do="start", name=name, argv=list(self._argv(name)), log=str(log))

    def stop(self, name: str, signal: int = 15) -> None:
        """End a daemon; on return it is gone."""
        self._ask(do="stop", name=name, number=signal)

    def alive(self) -> list[str]:
        """Daemons that run."""
        return list(self._ask(do="alive"))

    def crash_node(self, node: str) -> None:
        """A node loses power: its slurmd and all that runs in its jobs die at once."""
        self._ask(do="crash", name=node, mark=f"SLURMD_NODENAME={node}")

    def wait_until_ready(self, timeout: float = 60) -> None:
        """Until every node takes jobs; drained and failed ones are brought back first."""

        def ready() -> bool:
            states = call("sinfo", "-h", "-N", "-o", "%N %T").stdout.split("\n")
            pairs = {tuple(line.split()) for line in states if line}
            for node, state in pairs:
                if state.startswith(("drain", "fail", "down")) and not state.endswith("*"):
                    call("scontrol", "update", f"nodename={node}", "state=resume")
            good = {n for n, state in pairs if state in ("idle", "mixed", "allocated")}
            return good == set(NODES)

        wait_for("nodes of the cluster", ready, timeout)

    def reconfigure(self, accounting: bool) -> None:
        """Change between a cluster with accounting and one without."""
        for name in (*NODES, "slurmctld"):
            self.stop(name)
        if self.accounting:
            self.stop("slurmdbd")
        self.accounting = accounting
        self._configure()
        if accounting:
            self._start_slurmdbd()
        for name in ("slurmctld", *NODES):
            self.start(name)
        self.wait_until_ready()

    # --- configuration --------------------------------------------------------------------------

    @property
    def _socket(self) -> str:
        return str(self.root / "run/munge.socket")

    def _devices(self) -> None:
        for index in range(len(GPU_NODES) * GPUS):
            device = self.root / f"dev/nvidia{index}"
            if not device.exists():
                os.mknod(device, 0o20666, os.makedev(1, 3))

    def _configure(self) -> None:
        host = socket.gethostname().partition(".")[0]
        where = {"root": self.root, "socket": self._socket, "host": host}
        text = (
            (HERE / "slurm.conf")
            .read_text()
            .format(**where, ctld_port=CTLD_PORT, dbd_port=DBD_PORT)
        )
        if self.accounting:
            text += (
                "AccountingStorageType=accounting_storage/slurmdbd\n"
                f"AccountingStorageHost=127.0.0.1\nAccountingStoragePort={DBD_PORT}\n"
                f"AccountingStoragePass={self._socket}\n"
                "AccountingStorageTRES=gres/gpu,gres/gpu:h100\n"
                "AccountingStorageEnforce=associations\n"
            )
        else:
            text += "AccountingStorageType=accounting_storage/none\n"
        for index, node in enumerate(NODES):
            gres = ""
            if node in GPU_NODES:
                gres = f" Gres=gpu:h100:{GPUS} Feature=h100,{GPU_NODES[node]}"
            text += (
                f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={NODE_PORT + index}"
                f" CPUs={CPUS} RealMemory={MEMORY_MB}{gres} State=UNKNOWN\n"
            )
        gpu, cpu = ",".join(GPU_NODES), ",".join(CPU_NODES)
        text += (
            f"PartitionName=cpu Nodes={cpu} Default=YES MaxTime=1-0 DefaultTime=10\n"
            f"PartitionName=gpu Nodes={gpu} MaxTime=1-0 DefaultTime=10 PriorityTier=1\n"
            f"PartitionName=urgent Nodes={gpu} MaxTime=1-0 DefaultTime=10 PriorityTier=9"
            " PreemptMode=OFF\n"
        )
        etc = self.root / "etc"
        (etc / "slurm.conf").write_text(text)
        (etc / "gres.conf").write_text(
            "".join(
                f"NodeName={node} Name=gpu Type=h100 "
                f"File={self.root}/dev/nvidia[{GPUS * i}-{GPUS * i + GPUS - 1}]\n"
                for i, node in enumerate(GPU_NODES)
            )
        )
        (etc / "cgroup.conf").write_text("")
        (etc / "slurmdbd.conf").write_text(
            (HERE / "slurmdbd.conf")
            .read_text()
            .format(**where, dbd_port=DBD_PORT, sql_port=SQL_PORT)
        )
        (etc / "slurmdbd.conf").chmod(0o600)
        # The executor drops SLURM_CONF from the environment of its job steps, so the default place
        # has to work.
        ETC.mkdir(exist_ok=True)
        for name in ("slurm.conf", "gres.conf", "cgroup.conf", "slurmdbd.conf"):
            (ETC / name).unlink(missing_ok=True)
            (ETC / name).symlink_to(etc / name)


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "/tmp/slurm-testbed")
    with Cluster(folder.resolve(), accounting="--no-accounting" not in sys.argv):
        print(call("sinfo", "-N", "-l").stdout, "Ctrl-D stops the cluster.", flush=True)
        sys.stdin.read()
