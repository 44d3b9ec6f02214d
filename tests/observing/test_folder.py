"""Claims about the folder of observed ScaledObjects, on a real disk."""

import os
from pathlib import Path

from keda_gpu_scaler.observing.folder import BYTES_LIMIT, FILES_LIMIT, Contents, Folder


def changed(folder: Folder) -> Contents:
    found = folder.changed()
    assert found is not None
    return found


def test_files_are_read_at_first_and_when_one_of_them_changes(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: 1")
    (tmp_path / "b.yml").write_text("b: 1")
    (tmp_path / "README.md").write_text("not read")
    folder = Folder(tmp_path)
    assert changed(folder) == Contents({"a.yaml": "a: 1", "b.yml": "b: 1"}, ())
    assert folder.changed() is None
    (tmp_path / "a.yaml").write_text("a: 22")
    assert changed(folder).texts["a.yaml"] == "a: 22"
    (tmp_path / "b.yml").unlink()
    assert changed(folder).texts == {"a.yaml": "a: 22"}
    assert folder.changed() is None


def test_a_mounted_config_map_is_read_once_and_again_when_it_is_swapped(tmp_path: Path) -> None:
    """Kubernetes swaps a link to a hidden folder, and each file is a link through it."""
    for version in ("1", "2"):
        (tmp_path / f"..{version}").mkdir()
        (tmp_path / f"..{version}" / "a.yaml").write_text(f"a: {version}")
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "a.yaml").symlink_to("..data/a.yaml")
    (tmp_path / ".hidden.yaml").write_text("b: 1")
    folder = Folder(tmp_path)
    assert changed(folder) == Contents({"a.yaml": "a: 1"}, ())
    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").replace(tmp_path / "..data")
    assert changed(folder) == Contents({"a.yaml": "a: 2"}, ())


def test_what_is_no_readable_text_is_refused_and_hides_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").mkdir()
    os.mkfifo(tmp_path / "b.yaml")
    (tmp_path / "c.yaml").symlink_to("nowhere")
    (tmp_path / "d.yaml").write_bytes(b"\xff")
    (tmp_path / "e.yaml").write_text("e: 1")
    found = changed(Folder(tmp_path))
    assert found.texts == {"e.yaml": "e: 1"}
    assert [(one.file, one.why) for one in found.refused] == [
        ("a.yaml", "it is no file"),
        ("b.yaml", "it is no file"),
        ("c.yaml", "it cannot be read: No such file or directory"),
        ("d.yaml", "it is not UTF-8"),
    ]


def test_a_folder_that_goes_is_said_once_and_noticed_when_it_is_back(tmp_path: Path) -> None:
    path = tmp_path / "observed"
    folder = Folder(path)
    (refused,) = changed(folder).refused
    assert refused.why == "the folder cannot be read: No such file or directory"
    assert folder.changed() is None
    path.mkdir()
    assert changed(folder) == Contents({}, ())


def test_files_are_bounded_in_number_and_bytes(tmp_path: Path) -> None:
    for number in range(FILES_LIMIT + 5):
        (tmp_path / f"{number:03}.yaml").write_text("a: 1")
    found = changed(Folder(tmp_path))
    assert len(found.texts) == FILES_LIMIT
    assert [one.why for one in found.refused] == ["there are more than 200 files"]
    (tmp_path / "000.yaml").write_bytes(b"#" * (BYTES_LIMIT + 1))
    found = changed(Folder(tmp_path))
    assert "000.yaml" not in found.texts
    assert found.refused[0].why == "all files together are larger than 4 MiB"
