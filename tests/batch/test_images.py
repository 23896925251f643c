"""Images of every kind are decoded correctly or rejected; small files take little memory."""

from __future__ import annotations

import io
import os
import resource
import struct
import subprocess
import sys
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from irload import Limits, read_model
from irload.batch.geometry import geometry
from irload.batch.images import ImageOptions, load_image
from irload.batch.model_info import labels_of, range_warning, with_model_info
from irload.errors import InputInvalid, LimitExceeded, ReadError
from irrun.main import FINDINGS, USAGE
from tests.batch.models import identity, unary


def port(tmp_path, shape="?,3,?,?"):
    return read_model(identity(tmp_path / "port.xml", x=shape)).inputs[0]


def load(image, port, options=None, limits=None, **saved):
    """An image (or the bytes of one) as an array, rows × columns × channels."""
    stream = io.BytesIO(image if isinstance(image, bytes) else b"")
    if not isinstance(image, bytes):
        image.save(stream, saved.pop("format", "PNG"), **saved)
        stream.seek(0)
    array = load_image(stream, port, options or ImageOptions(), limits or Limits())
    return array.transpose(1, 2, 0)


PIXELS = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)


@pytest.mark.parametrize("form", ["PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation(tmp_path, form, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    upright = {
        1: PIXELS,
        2: PIXELS[:, ::-1],
        3: PIXELS[::-1, ::-1],
        4: PIXELS[::-1],
        5: PIXELS.transpose(1, 0, 2),
        6: np.rot90(PIXELS, -1),
        7: np.rot90(PIXELS.transpose(1, 0, 2), 2),
        8: np.rot90(PIXELS),
    }[orientation]
    options = {"lossless": True} if form == "WEBP" else {}
    shape = f"?,3,{upright.shape[0]},{upright.shape[1]}"
    array = load(Image.fromarray(PIXELS), port(tmp_path, shape), format=form, exif=exif, **options)
    np.testing.assert_array_equal(array, upright)


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
def test_greys_of_16_bits_are_scaled(tmp_path, form):
    values = np.array([[0, 128, 1000, 32768, 65535]], np.uint16)
    array = load(Image.fromarray(values), port(tmp_path, "?,1,?,?"), format=form)
    assert array[0, :, 0].tolist() == [0, 0, 4, 128, 255]  # rounded
    array = load(Image.fromarray(values), port(tmp_path), format=form)
    assert array[0, 3].tolist() == [128] * 3


def test_greys_of_32_bits_are_rejected(tmp_path):
    for values in (np.array([[70000]], np.int32), np.array([[0.5]], np.float32)):
        with pytest.raises(ReadError, match="values of 32 bits"):
            load(Image.fromarray(values), port(tmp_path), format="TIFF")


def test_modes(tmp_path):
    image = Image.fromarray(PIXELS)
    alpha = image.convert("RGBA")
    alpha.putalpha(0)
    np.testing.assert_array_equal(load(alpha, port(tmp_path)), PIXELS)
    cmyk = image.convert("CMYK")
    np.testing.assert_array_equal(load(cmyk, port(tmp_path), format="TIFF"), np.asarray(cmyk.convert("RGB")))
    palette = image.quantize(16)
    wanted = np.asarray(palette.convert("RGB"))
    np.testing.assert_array_equal(load(palette, port(tmp_path), transparency=b"\x00\x80"), wanted)
    bits = Image.fromarray(PIXELS[..., 0] > 99)
    assert set(np.unique(load(bits, port(tmp_path, "?,1,?,?")))) == {0, 255}
    frames = [Image.new("RGB", (6, 4), c) for c in ("red", "blue")]
    array = load(frames[0], port(tmp_path), format="GIF", save_all=True, append_images=frames[1:])
    assert array[0, 0].tolist() == [255, 0, 0]


def png(width, height):
    """A PNG file of a few bytes that declares a grey image of this size."""
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"\0" * 9)),
        (b"IEND", b""),
    ]
    parts = [struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def test_limits_bound_every_size(tmp_path):
    free = port(tmp_path)
    with pytest.raises(LimitExceeded, match="has too many pixels"):
        load(png(100_000, 100_000), free)
    with pytest.raises(LimitExceeded, match="once resized"):
        load(png(1, 30_000), free, ImageOptions(resize=(300,)))
    with pytest.raises(LimitExceeded, match="once resized"):
        load(png(4, 4), free, ImageOptions(resize=(100_000, 100_000)))
    with pytest.raises(LimitExceeded, match="once resized"):
        load(png(1, 30_000), free, ImageOptions(resize=(300,), crop=(8, 8)))
    with pytest.raises(LimitExceeded, match="image-pixels"):
        load(Image.fromarray(PIXELS), free, limits=Limits(image_pixels=23))
    assert load(Image.fromarray(PIXELS), free, limits=Limits(image_pixels=24)).shape == (4, 6, 3)


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory by a Linux limit")
def test_a_small_file_takes_little_memory(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "tall.png").write_bytes(png(1, 9000))
    model = identity(tmp_path / "m.xml", x="?,3,?,?")
    words = ["batch", model, tmp_path / "in", "-o", tmp_path / "out", "--resize", "300", "--keep-going"]
    job = subprocess.run([sys.executable, "-m", "irrun", *map(str, words)], capture_output=True, text=True, check=False)
    assert job.returncode == FINDINGS, job.stderr
    assert "would have too many pixels once resized" in job.stderr
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 1_500_000


def test_wrong_sizes_are_rejected_before_decoding(tmp_path):
    with pytest.raises(InputInvalid, match=r"is 6x4; input 'x' takes 10x8 \(--resize 10x8\)"):
        load(png(6, 4), port(tmp_path, "?,3,8,10"))


@pytest.mark.parametrize("form", ["PPM", "EPS"])  # EPS would be passed to another program; PPM would be read
def test_other_formats_are_not_tried(tmp_path, form):
    stream = io.BytesIO()
    Image.fromarray(PIXELS).save(stream, form)
    with pytest.raises(ReadError, match="cannot be read as an image"):
        load(stream.getvalue(), port(tmp_path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no FIFOs")
@pytest.mark.parametrize("name", ["a.png", "a.npy", "a.parquet"])
def test_special_files_do_not_block(batch, tmp_path, name):
    (tmp_path / "in").mkdir()
    os.mkfifo(tmp_path / "in" / name)
    model = identity(tmp_path / "m.xml", x="?,3,?,?")
    words = (tmp_path / "in", "-o", tmp_path / "out")
    if name == "a.parquet":
        assert "a FIFO, expected a regular file" in batch(*words, model=model, code=3)
    else:
        (failure,) = batch(*words, model=model, code=FINDINGS)["failures"]
        assert failure["reason"].endswith("a FIFO, expected a regular file")
    (tmp_path / "in" / name).unlink()
    (tmp_path / "in" / name).symlink_to("/dev/zero")
    said = batch(*words, "--force", model=model, code=3 if name == "a.parquet" else FINDINGS)
    assert "a device, expected a regular file" in str(said)


def test_images_in_tables(batch, tmp_path):
    stream = io.BytesIO()
    Image.fromarray(PIXELS).save(stream, "PNG")
    content = stream.getvalue()
    model = identity(tmp_path / "m.xml", x="?,3,4,6")
    cells = [content, None, b"nothing"]
    hugging = [{"bytes": content, "path": "a.png"}, {"bytes": None, "path": "/etc/passwd"}, None]
    for column in (pa.array(cells), pa.array(hugging), pa.array(cells, pa.large_binary())):
        pq.write_table(pa.table({"x": column, "id": [1, 2, 3]}), tmp_path / "t.parquet")
        words = (tmp_path / "t.parquet", "-o", tmp_path / "o.parquet", "--force")
        report = batch(*words, model=model, code=FINDINGS)
        assert (report["done"], report["failed"]) == (1, 2)
        (row,) = pq.read_table(tmp_path / "o.parquet")["x"].combine_chunks().to_numpy_ndarray()
        np.testing.assert_array_equal(row, PIXELS.transpose(2, 0, 1))


# -- sizes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "fit", "window", "wanted"),
    [
        ((100, 50), "standard", (20, 20), ((20, 20), None, None)),
        ((100, 50), "fit_to_window", (20, 20), ((20, 10), None, ((20, 20), (0, 0), 7))),
        ((100, 50), "fit_to_window_letterbox", (20, 20), ((20, 10), None, ((20, 20), (0, 5), 7))),
        ((50, 100), "fit_to_window_letterbox", (20, 20), ((10, 20), None, ((20, 20), (5, 0), 7))),
        ((100, 50), "crop", (20, 20), ((20, 20), (25, 0, 75, 50), None)),
        ((50, 100), "crop", (20, 10), ((20, 10), (0, 37, 50, 62), None)),
        ((9, 9), "crop", (9, 9), ((9, 9), (0, 0, 9, 9), None)),
        ((10_000, 1), "fit_to_window", (20, 20), ((20, 1), None, ((20, 20), (0, 0), 7))),
    ],
)
def test_fits(source, fit, window, wanted):
    plan = geometry(source, None, None, fit, window, 7)
    assert (plan.resized, plan.box, plan.canvas) == wanted
    assert plan.size == window
    image = plan.apply(Image.new("RGB", source, (1, 2, 3)), Image)
    assert image.size == window
    assert {c for _, c in image.getcolors()} <= {(1, 2, 3), (7, 7, 7)}


# -- metadata of the model ---------------------------------------------------------------------------------------------

INFO = """<rt_info><model_info>
<mean_values value="123.675 116.28 103.53"/><scale_values value="58.395 57.12 57.375"/>
<reverse_input_channels value="{reverse}"/><resize_type value="fit_to_window_letterbox"/><pad_value value="114"/>
<labels value="cat dog"/><embedded_processing value="{embedded}"/></model_info></rt_info>"""


def with_info(model, reverse="True", embedded="False"):
    text = model.read_text().replace("</net>", INFO.format(reverse=reverse, embedded=embedded) + "</net>")
    model.write_text(text)
    return model


@pytest.mark.one_in(2)
@pytest.mark.parametrize("reverse", ["True", "False"])
def test_model_metadata_sets_the_image_options(batch, tmp_path, reverse):
    (tmp_path / "in").mkdir()
    Image.fromarray(PIXELS).save(tmp_path / "in" / "a.png")
    model = with_info(identity(tmp_path / "m.xml", x="?,3,6,6"), reverse)
    batch(tmp_path / "in", "-o", tmp_path / "out", "--format", "npy", model=model)
    canvas = np.full((6, 6, 3), 114.0, np.float32)
    canvas[1:5] = PIXELS
    canvas = canvas if reverse == "True" else canvas[:, :, ::-1]
    wanted = (canvas - np.array([123.675, 116.28, 103.53], np.float32)) / np.array([58.395, 57.12, 57.375], np.float32)
    np.testing.assert_allclose(np.load(tmp_path / "out" / "a.npy").transpose(1, 2, 0), wanted, rtol=1e-6)
    words = ("--resize", "6x6", "--mean", "1", "--scale", "2", "--channels", "rgb")
    batch(tmp_path / "in", "-o", tmp_path / "own", "--format", "npy", *words, model=model)
    stretched = np.asarray(Image.fromarray(PIXELS).resize((6, 6), Image.Resampling.BILINEAR), np.float32)
    np.testing.assert_allclose(np.load(tmp_path / "own" / "a.npy").transpose(1, 2, 0), (stretched - 1) / 2, rtol=1e-6)


def test_embedded_processing_is_not_done_twice(batch, tmp_path):
    (tmp_path / "in").mkdir()
    Image.fromarray(PIXELS).save(tmp_path / "in" / "a.png")
    model = with_info(identity(tmp_path / "m.xml", x="?,3,4,6"), embedded="True")
    batch(tmp_path / "in", "-o", tmp_path / "out", "--format", "npy", model=model)
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "a.npy").transpose(1, 2, 0), PIXELS)


def test_labels_of_the_model(batch, tmp_path):
    np.save(tmp_path / "x.npy", np.array([[1, 3]], np.float32))
    model = with_info(unary(tmp_path / "m.xml", "?,2", "ReLU"))
    batch(tmp_path / "x.npy", "-o", tmp_path / "o.jsonl", model=model)
    assert '"label": "dog", "value": 3.0' in (tmp_path / "o.jsonl").read_text()
    batch(tmp_path / "x.npy", "-o", tmp_path / "o.csv", model=model)
    assert (tmp_path / "o.csv").read_text().splitlines()[0] == "input,y[cat],y[dog]"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mean_values", "1 2"),
        ("mean_values", "a"),
        ("scale_values", "0"),
        ("scale_values", "nan"),
        ("resize_type", "big"),
        ("pad_value", "256"),
        ("pad_value", "1 2 3"),
        ("reverse_input_channels", "perhaps"),
    ],
)
def test_invalid_metadata_is_an_error(key, value):
    with pytest.raises(InputInvalid, match="model_info"):
        with_model_info(ImageOptions(), {"model_info": {key: value}})


def test_models_without_metadata_change_no_options():
    for info in ({}, {"model_info": "text"}, {"model_info": {"labels": {}, "mean_values": ""}}):
        assert with_model_info(ImageOptions(), info) == ImageOptions()
        assert labels_of(info) == ()


def test_means_for_the_other_range(batch, tmp_path):
    options = ImageOptions(mean=(0.485, 0.456, 0.406), scale=(0.229, 0.224, 0.225))
    assert "the equivalent is --mean 123.675,116.28,103.53 --scale 58.395,57.12,57.375" in range_warning(options)
    assert range_warning(ImageOptions(scale=(1 / 255,))) is not None
    for fine in (ImageOptions(), ImageOptions(scale=(255,)), ImageOptions(mean=(127.5,), scale=(127.5,))):
        assert range_warning(fine) is None
    Image.fromarray(PIXELS).save(tmp_path / "a.png")
    model = identity(tmp_path / "m.xml", x="?,3,4,6")
    report = batch(tmp_path / "a.png", "-o", tmp_path / "out", "--mean", "0.5", model=model)
    assert "meant for pixels of 0..1" in report["warnings"][-1]
    np.save(tmp_path / "x.npy", np.zeros((1, 3, 4, 6), np.float32))
    said = batch(tmp_path / "x.npy", "-o", tmp_path / "p", "--mean", "0.5", model=model, code=USAGE)
    assert "none of the inputs is an image" in said
