"""A large parser that teaches the small one: biaffine attention over all-MiniLM-L6-v2.

Dozat and Manning 2017 over a fine-tuned transformer. It is trained on the treebank, in the tokens of the shipped
tokenizer, and then gives the probabilities of trees of plain texts. It is never shipped.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from torch import Tensor, nn
from torch.nn import functional

from heedful.training import checkpoint, teachers
from heedful.training.optimise import make_schedule
from tools.parser.model import FAR

UNKNOWN = -1
"""Label of a word that the alignment leaves without a head: it is not learned from."""
TOKENS_A_BATCH = 800
EPOCHS = 4
WARM_UP = 150
LONGEST = 200
"""Words of a text, at most: MiniLM takes 512 pieces."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """L words in spaCy's tokens. `heads` counts from 1, 0 is the root, `UNKNOWN` is not aligned."""

    words: list[str]
    heads: list[int]
    relations: list[str]

    def __len__(self) -> int:
        return len(self.words)


def aligned(nlp: Language, gold: Sequence[Doc]) -> list[Sentence]:
    """Gold documents -> their words as `nlp` tokenizes them, heads where they align."""
    sentences = []
    for reference in gold:
        predicted = nlp.make_doc(reference.text)
        heads, relations = Example(predicted, reference).get_aligned_parse(projectivize=False)
        if any(token.is_space for token in predicted):
            continue
        sentences.append(
            Sentence(
                [token.text for token in predicted],
                [
                    UNKNOWN if head is None else 0 if head == i else head + 1
                    for i, head in enumerate(heads)
                ],
                [relation or "" for relation in relations],
            )
        )
    return sentences


class TreeTeacher(nn.Module):
    """Words -> scores of heads, and of relations given a head. Position 0 is [CLS] and stands for the root."""

    def __init__(self, relations: Sequence[str], *, arc: int = 256, relation: int = 96) -> None:
        super().__init__()
        self.relations = tuple(relations)
        loaded = teachers.load(teachers.MINILM)
        self.encoder, self.tokenizer = loaded.model, loaded.tokenizer
        self.encoder.embeddings.word_embeddings.requires_grad_(False)  # half of the weights
        # Faster than fused attention on a CPU in bfloat16.
        self.encoder.set_attn_implementation("eager")
        self._pieces: dict[str, list[int]] = {}
        width: int = self.encoder.config.hidden_size
        self.dropout = nn.Dropout(0.2)
        self.arc_head, self.arc_dependent = nn.Linear(width, arc), nn.Linear(width, arc)
        self.arc = nn.Parameter(torch.eye(arc) / arc**0.5)
        self.arc_prior = nn.Linear(arc, 1)  # how likely a word governs anything
        self.relation_head = nn.Linear(width, relation)
        self.relation_dependent = nn.Linear(width, relation)
        self.relation = nn.Parameter(0.02 * torch.randn(len(relations), relation + 1, relation + 1))

    def forward(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """B sentences of at most L words -> word vectors (B, 1 + L, D), arc scores [dependent, head]."""
        x, mask = self._words(sentences)
        head = self.dropout(functional.gelu(self.arc_head(x)))
        dependent = self.dropout(functional.gelu(self.arc_dependent(x)))
        scores = dependent @ self.arc @ head.transpose(1, 2) + self.arc_prior(head).transpose(1, 2)
        itself = torch.eye(x.shape[1], dtype=torch.bool)
        return x, scores.float().masked_fill(~mask[:, None, :] | itself, FAR)

    def relation_scores(self, x: Tensor, heads: Tensor) -> Tensor:
        """Word vectors (B, 1 + L, D) and a head for each (B, 1 + L) -> (B, 1 + L, R)."""
        dependent = functional.gelu(self.relation_dependent(x))
        head = functional.gelu(self.relation_head(x))
        head = head.gather(1, heads[:, :, None].expand(-1, -1, head.shape[-1]))
        one = torch.ones(*head.shape[:2], 1, dtype=head.dtype)
        dependent, head = torch.cat([dependent, one], -1), torch.cat([head, one], -1)
        width = dependent.shape[-1]
        rows = self.relation.transpose(0, 1).flatten(1)  # (A, R C)
        by_head = (dependent @ rows).unflatten(-1, (-1, width))  # (B, 1 + L, R, C)
        scores: Tensor = (by_head @ head[..., None])[..., 0].float()
        return scores

    def _words(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """The mean of each word's pieces (B, 1 + L, D), and whether each position holds a word or the root."""
        first, last = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        rows, owners = [], []
        # The root, the words, and a place for [SEP] and padding.
        places = max(map(len, sentences)) + 2
        for row, words in enumerate(sentences):
            pieces = [self._word(word) for word in words]
            rows.append([first, *(piece for word in pieces for piece in word), last])
            spread = np.repeat(np.arange(1, len(words) + 1), [len(word) for word in pieces])
            owners.append(row * places + np.concatenate([[0], spread, [places - 1]]))
        longest = max(map(len, rows))
        ids = np.zeros((len(rows), longest), np.int64)
        owner = np.tile(np.arange(len(rows))[:, None] * places + places - 1, (1, longest))
        for row, (pieces_of, owned) in enumerate(zip(rows, owners, strict=True)):
            ids[row, : len(pieces_of)], owner[row, : len(owned)] = pieces_of, owned
        mask = torch.from_numpy(np.arange(longest) < np.array([len(row) for row in rows])[:, None])
        encoded = self.encoder(input_ids=torch.from_numpy(ids), attention_mask=mask.long())
        hidden = encoded.last_hidden_state.float()  # (B, P, D)
        count = torch.from_numpy(np.bincount(owner.ravel(), minlength=len(rows) * places))
        x = torch.zeros(len(rows) * places, hidden.shape[-1])
        x = x.index_add(0, torch.from_numpy(owner.ravel()), hidden.flatten(0, 1))
        x = (x / count.clamp(min=1)[:, None]).unflatten(0, (len(rows), places))[:, :-1]
        lengths = torch.tensor([len(words) for words in sentences])
        return self.dropout(x), torch.arange(places - 1)[None] <= lengths[:, None]

    def _word(self, word: str) -> list[int]:
        if word not in self._pieces:
            ids = self.tokenizer(word, add_special_tokens=False)["input_ids"]
            self._pieces[word] = ids[:20] or [self.tokenizer.unk_token_id]
        return self._pieces[word]


def train(
    gold: Sequence[Sequence[Sentence]],
    *,
    seed: int,
    dev: Sequence[Sentence] = (),
    console: Console | None = None,
    file: Path | None = None,
) -> TreeTeacher:
    """Fine-tune on gold sentences, a list of them for each epoch.

    AdamW, the transformer at 1e-4, the rest at 1.5e-3, falling linearly to 0. With `file` each epoch is
    saved there, and an interrupted run continues after it.
    """
    torch.manual_seed(seed)
    teacher = TreeTeacher(
        sorted({name for sentence in gold[0] for name in sentence.relations if name})
    )
    encoder = [p for p in teacher.encoder.parameters() if p.requires_grad]
    inside = {id(p) for p in teacher.encoder.parameters()}
    rest = [p for p in teacher.parameters() if id(p) not in inside]
    optimiser = torch.optim.AdamW(
        [{"params": encoder, "lr": 1e-4}, {"params": rest, "lr": 1.5e-3}],
        weight_decay=0.01,
        fused=True,
    )
    plans = [batches(part, random.Random(seed + i)) for i, part in enumerate(gold)]
    steps = sum(map(len, plans))
    schedule = make_schedule(optimiser, "linear", WARM_UP / steps, steps)
    done = 0
    if file is not None and file.exists():
        state = checkpoint.load(file)
        teacher.load_state_dict(state["weights"])
        optimiser.load_state_dict(state["optimiser"])
        schedule.load_state_dict(state["schedule"])
        done = state["epoch"]
    for epoch, plan in enumerate(plans[done:], done + 1):
        teacher.train()
        torch.manual_seed(seed * 1000 + epoch)  # as in loop.train
        for batch in track(plan, f"teacher, epoch {epoch}"):
            loss = _loss(teacher, batch)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(teacher.parameters(), 1.0)
            optimiser.step()
            schedule.step()
        if console is not None:
            uas, las = accuracy(teacher, dev)
            console.print(
                f"teacher, epoch {epoch}: dev {uas:.4f} of heads, {las:.4f} with relation"
            )
        if file is not None:
            state = {"weights": teacher.state_dict(), "optimiser": optimiser.state_dict()}
            checkpoint.save(file, {**state, "schedule": schedule.state_dict(), "epoch": epoch})
    return teacher.eval()


def _loss(teacher: TreeTeacher, batch: Sequence[Sentence]) -> Tensor:
    """Cross-entropy of heads, and of relations given the right heads."""
    heads, names = _answers(teacher, batch)
    with torch.autocast("cpu", torch.bfloat16):
        x, arcs = teacher([sentence.words for sentence in batch])
        scores = teacher.relation_scores(x, heads.clamp(min=0))
    return functional.cross_entropy(
        arcs.flatten(0, 1), heads.flatten(), ignore_index=UNKNOWN
    ) + functional.cross_entropy(scores.flatten(0, 1), names.flatten(), ignore_index=UNKNOWN)


def _answers(teacher: TreeTeacher, batch: Sequence[Sentence]) -> tuple[Tensor, Tensor]:
    """Heads and relations (B, 1 + L), UNKNOWN where there is none."""
    number = {name: i for i, name in enumerate(teacher.relations)}
    heads = torch.full((len(batch), max(map(len, batch)) + 1), UNKNOWN)
    names = heads.clone()
    for row, sentence in enumerate(batch):
        span = slice(1, len(sentence) + 1)
        heads[row, span] = torch.tensor(sentence.heads)
        names[row, span] = torch.tensor([number.get(r, UNKNOWN) for r in sentence.relations])
    return heads, names


def accuracy(teacher: TreeTeacher, gold: Sequence[Sentence]) -> tuple[float, float]:
    """Shares of words whose best head, and best head and relation, are right; punctuation counts."""
    teacher.eval()
    right = labelled = known = 0
    for batch in batches(gold, random.Random(0)):
        heads, names = _answers(teacher, batch)
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
            x, arcs = teacher([sentence.words for sentence in batch])
            best = arcs.argmax(-1)
            relations = teacher.relation_scores(x, best).argmax(-1)
        hit = (best == heads) & (heads != UNKNOWN)
        known += int((heads != UNKNOWN).sum())
        right += int(hit.sum())
        labelled += int((hit & (relations == names)).sum())
    return right / known, labelled / known


def load_or_train(
    gold: Sequence[Sequence[Sentence]],
    file: Path,
    *,
    seed: int,
    dev: Sequence[Sentence] = (),
    console: Console | None = None,
) -> TreeTeacher:
    """The teacher in `file`; it is trained and written there first if it is missing."""
    if not file.exists():
        unfinished = file.with_suffix(".partly.pt")
        teacher = train(gold, seed=seed, dev=dev, console=console, file=unfinished)
        checkpoint.save(file, {"relations": [*teacher.relations], "weights": teacher.state_dict()})
        unfinished.unlink()
    state = checkpoint.load(file)
    teacher = TreeTeacher(state["relations"])
    teacher.load_state_dict(state["weights"])
    return teacher.eval()


def batches(sentences: Sequence[Sentence], rng: random.Random) -> list[list[Sentence]]:
    """Batches of about `TOKENS_A_BATCH` words, of similar lengths, in random order."""
    order = rng.sample(sentences, len(sentences))
    groups: list[list[Sentence]] = []
    for start in range(0, len(order), 1280):
        batch: list[Sentence] = []
        for sentence in sorted(order[start : start + 1280], key=len):
            if batch and (len(batch) + 1) * len(sentence) > TOKENS_A_BATCH:
                groups.append(batch)
                batch = []
            batch.append(sentence)
        groups.append(batch)
    rng.shuffle(groups)
    return groups
