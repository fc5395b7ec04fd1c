"""label: a teacher's vectors of the texts that a task's embedding learns from."""

import random
from typing import Annotated

import torch
import typer

from heedful.cli.options import DATA, Data, Threads
from heedful.training import tasks, teacher_vectors
from heedful.training.config import CACHE, Device
from heedful.training.optimise import require_device
from heedful.training.teachers import MINILM


def command(
    task: Annotated[str, typer.Argument(help="Task without labels, such as embed.")],
    teacher: Annotated[
        str, typer.Option(help="minilm, mpnet, or another sentence encoder's folder.")
    ] = MINILM,
    data: Data = DATA,
    threads: Threads = 1,
    device: Annotated[Device, typer.Option(help="Where the teacher runs.")] = "cpu",
) -> None:
    """Encode a task's training texts with a teacher, for `heedful train` to learn from.

    Texts are read in random order and stored every few thousand: an interrupted command continues where it stopped,
    and a run can use the texts that are stored so far.

    Example: python -m tools label embed
    """
    torch.set_num_threads(threads)
    require_device(device)
    texts = tasks.get(task).texts(data)
    random.Random(task).shuffle(texts)

    def progress(left: int) -> None:
        typer.echo(f"{len(texts) - left:,} of {len(texts):,} texts")

    teacher_vectors.stored_vectors(teacher, texts, CACHE, device, progress)
