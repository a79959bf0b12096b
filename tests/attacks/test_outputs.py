"""What `-o` names: devices and FIFOs are written, links kept, inputs never lost, results kept."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from forks import placeopt

from placeopt import cli
from placeopt.core.errors import DocumentError
from placeopt.core.files.paths import require_outputs, write_parts
from placeopt.core.fronts.front import Front

ROOT = Path(__file__).resolve().parents[2]
TOY = ROOT / "instances" / "temporal" / "toy.json"
QUICK = ("--method", "greedy", "--evaluations", "50")


def run(capfd: pytest.CaptureFixture[str], *arguments: object, code: int) -> str:
    """Run a command in this process; return what it printed on stderr."""
    with pytest.raises(SystemExit) as end:
        cli.main([str(a) for a in arguments])
    err = capfd.readouterr().err
    assert (end.value.code or 0) == code, err
    return err


# -- what is there already -------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_fifo_is_written_not_replaced(tmp_path: Path) -> None:
    """Its reader gets the content."""
    fifo, got = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()), daemon=True)
    reader.start()
    write_parts(fifo, (b"one ", b"two"))
    reader.join(10)
    assert got == [b"one two"] and stat.S_ISFIFO(fifo.stat().st_mode)


@pytest.fixture
def null(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of /dev/null, for code that errs would replace it."""
    null = tmp_path_factory.mktemp("device") / "null"
    try:
        os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        null.write_bytes(b"x")
    except OSError:
        pytest.skip("only root makes devices, and not in every container")
    return null


def test_a_device_is_written_not_replaced(null: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """And nothing is left beside it."""
    run(capfd, "solve", TOY, *QUICK, "-o", null, code=0)
    assert stat.S_ISCHR(null.stat().st_mode)
    assert [p.name for p in null.parent.iterdir()] == ["null"]


def test_links_mode_and_owner_stay(tmp_path: Path) -> None:
    """A symbolic link shows the new content under both names; nothing is left beside it."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old and longer")
    real.chmod(0o640)
    link.symlink_to(real)
    if os.geteuid() == 0:
        os.chown(real, 12345, 12346)
    before = real.stat()
    write_parts(link, (b"new",))
    after = real.stat()
    assert link.is_symlink() and real.read_bytes() == b"new"
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    write_parts(real, (b"ne", b"w2"))
    assert real.read_bytes() == b"new2"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "real"]


def test_a_link_to_nothing_makes_its_target(tmp_path: Path) -> None:
    """As a shell would."""
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_parts(tmp_path / "link", (b"x",))
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_bytes() == b"x"


# -- inputs and other outputs ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an instance, a front of it, and files that other commands read."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "toy.json").write_bytes(TOY.read_bytes())
    with pytest.raises(SystemExit):
        cli.main(["solve", str(TOY), *QUICK, "-o", str(folder / "f.json")])
    for name in ("w.json", "p.csv", "s.yaml", "p.npz", "s.origin.json"):
        (folder / name).write_text("precious")
    return folder


@pytest.mark.parametrize(
    "line",
    [
        "solve toy.json -o toy.json",
        "solve toy.json -o ./../{folder}/toy.json",
        "solve toy.json --start f.json -o f.json",
        "solve toy.json --method policy --policy p.npz -o p.npz",
        "solve toy.json -o new.html --plot new.html",
        "solve toy.json --plot toy.json",
        "pick f.json -o f.json",
        "merge f.json -o f.json",
        "plot f.json -o f.json",
        "plot f.json --instance toy.json -o toy.json",
        "report f.json -o f.json",
        "report f.json --instance toy.json -o toy.json",
        "export kubernetes f.json --instance toy.json -o toy.json",
        "export kubernetes f.json --instance toy.json --origin s.origin.json -o s.origin.json",
        "import kubernetes s.yaml --to temporal -o s.yaml",
        "import kubernetes s.origin.json --to temporal -o s.json",
        "import kubernetes s.yaml --to temporal --prices p.csv -o p.csv",
        "import kubernetes s.yaml --to temporal -o new.json --report new.json",
        "import kubernetes s.yaml --to temporal --report new.origin.json -o new.json",
        "import mubench w.json -o w.json",
    ],
)
def test_no_input_is_overwritten_and_no_output_twice(
    files: Path, line: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused by name before the work begins, in every command that writes."""
    monkeypatch.chdir(files)
    before = {p.name: p.read_bytes() for p in files.iterdir()}
    err = run(capfd, *line.format(folder=files.name).split(), code=2)
    assert err.startswith("error: ") and err.count("\n") == 1
    assert "is also the input" in err or "is also another output" in err, err
    assert {p.name: p.read_bytes() for p in files.iterdir()} == before


def test_links_are_seen_through(tmp_path: Path) -> None:
    """A link to an input is the input, and so is a hard link."""
    (tmp_path / "x").touch()
    (tmp_path / "soft").symlink_to("x")
    os.link(tmp_path / "x", tmp_path / "hard")
    for name in ("soft", "hard"):
        with pytest.raises(DocumentError, match="is also the input"):
            require_outputs(tmp_path / name, inputs=(tmp_path / "x",))


def test_a_device_takes_any_number_of_outputs(null: Path, tmp_path: Path) -> None:
    """It holds nothing that would be lost."""
    require_outputs(null, null, tmp_path / "new", inputs=(null,))


# -- nothing is lost at the end --------------------------------------------------------------------


def kept_front(err: str) -> Path:
    """Return where the message says that the front is."""
    assert err.count("the result is kept in ") == 1, err
    path = Path(err.rpartition("the result is kept in ")[2].strip())
    assert len(Front.read(path)) > 0
    return path


@pytest.fixture
def full_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a device without room: a copy of /dev/full, for code that errs would replace it."""
    full = tmp_path_factory.mktemp("device") / "full"
    try:
        os.mknod(full, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
        full.open("wb").close()
    except OSError:
        pytest.skip("only root makes devices, and not in every container")
    return full


def test_a_full_disk_loses_nothing(
    full_disk: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The front goes to the temporary folder, which is named; exit code 1."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    err = run(capfd, "solve", TOY, *QUICK, "-o", full_disk, code=1)
    assert f"error: {full_disk}: cannot write: No space left on device" in err
    assert kept_front(err).is_relative_to(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_stdout_loses_nothing(tmp_path: Path) -> None:
    """Stdout may be a file on a full disk."""
    environment = {"TMPDIR": str(tmp_path)}
    done = placeopt("solve", TOY, *QUICK, stdout="/dev/full", environment=environment)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    kept_front(done.stderr)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["methods"], ["--version"], ["schema", "--help"]])
def test_a_full_stdout_is_one_line(arguments: list[str]) -> None:
    """Tables, versions and help, which libraries print: one message and exit code 1."""
    done = placeopt(*arguments, stdout="/dev/full")
    assert done.returncode == 1
    assert done.stderr == "error: <stdout>: cannot write: No space left on device\n"


def test_a_reader_that_left_is_no_error() -> None:
    """Nothing is said of a broken pipe; the command ends with its own exit code."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as pipe:
        command = [sys.executable, "-m", "placeopt", "methods"]
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0 and "error" not in done.stderr


def test_a_folder_that_is_gone_loses_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was there when the run began."""
    from placeopt import api

    folder, solve = tmp_path / "gone", api.solve
    folder.mkdir()

    def and_remove(*arguments: object, **more: object) -> Front:
        folder.rmdir()
        return solve(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(api, "solve", and_remove)
    err = run(capfd, "solve", TOY, *QUICK, "-o", folder / "f.json", code=1)
    assert kept_front(err).name == "f.json"


def test_nowhere_to_keep_it_is_said(
    full_disk: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Still no traceback."""

    def full(prefix: str) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.mkdtemp", full)
    err = run(capfd, "solve", TOY, *QUICK, "-o", full_disk, code=1)
    assert "nor can it be kept elsewhere" in err and "Traceback" not in err
