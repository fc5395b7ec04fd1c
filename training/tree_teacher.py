"""A large parser that teaches the small one: biaffine attention over all-MiniLM-L6-v2.

Dozat and Manning 2017 over a fine-tuned transformer. It is trained on the treebank, in spaCy's tokens, and
then writes trees for plain text; spaCy's parser learns from both. It is never shipped.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.progress import track
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from torch import Tensor, nn
from torch.nn import functional

from heedful.text.structure import check_heads
from heedful.training import checkpoint, minilm

UNKNOWN = -1
"""Label of a word that the alignment leaves without a head: it teaches nothing."""
TOKENS_A_BATCH = 512
EPOCHS = 3


@dataclass(frozen=True, slots=True)
class Sentence:
    """L words in spaCy's tokens. `heads` counts from 1, 0 is the root, `UNKNOWN` is not aligned."""

    words: list[str]
    heads: list[int]
    relations: list[str]


def aligned(nlp: Language, gold: Sequence[Doc]) -> list[Sentence]:
    """Gold documents of one sentence each -> their words as `nlp` tokenizes them, heads where they align."""
    found = []
    for reference in gold:
        predicted = nlp.make_doc(reference.text)
        heads, relations = Example(predicted, reference).get_aligned_parse(projectivize=False)
        if any(token.is_space for token in predicted):
            continue
        found.append(
            Sentence(
                [token.text for token in predicted],
                [
                    UNKNOWN if head is None else 0 if head == i else head + 1
                    for i, head in enumerate(heads)
                ],
                [relation or "" for relation in relations],
            )
        )
    return found


class TreeTeacher(nn.Module):
    """Words -> scores of heads, and of relations given a head. Position 0 is [CLS] and stands for the root."""

    def __init__(self, relations: Sequence[str], *, arc: int = 256, relation: int = 96) -> None:
        super().__init__()
        self.relations = tuple(relations)
        loaded = minilm.load()
        self.encoder, self.tokenizer = loaded.model, loaded.tokenizer
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
        return x, scores.masked_fill(~mask[:, None, :] | itself, -1e4)

    def relation_scores(self, x: Tensor, heads: Tensor) -> Tensor:
        """Word vectors (B, 1 + L, D) and a head for each (B, 1 + L) -> (B, 1 + L, R)."""
        dependent = functional.gelu(self.relation_dependent(x))
        head = functional.gelu(self.relation_head(x))
        head = head.gather(1, heads[:, :, None].expand(-1, -1, head.shape[-1]))
        one = torch.ones(*head.shape[:2], 1)
        return torch.einsum(
            "bia,rac,bic->bir",
            torch.cat([dependent, one], -1),
            self.relation,
            torch.cat([head, one], -1),
        )

    def _words(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Mean of each word's pieces (B, 1 + L, D), and which positions hold a word or the root."""
        pieces = self.tokenizer(
            [list(words) for words in sentences],
            is_split_into_words=True,
            padding=True,
            truncation=True,
            max_length=512,
            return_tensors="pt",
        )
        hidden = self.encoder(
            input_ids=pieces["input_ids"], attention_mask=pieces["attention_mask"]
        ).last_hidden_state  # (B, P, D)
        longest = max(map(len, sentences))
        owner = torch.zeros(*hidden.shape[:2], longest + 1)  # (B, P, 1 + L): which piece is whose
        owner[:, 0, 0] = 1
        for row in range(len(sentences)):
            for piece, word in enumerate(pieces.word_ids(row)):
                if word is not None:
                    owner[row, piece, word + 1] = 1
        x = owner.transpose(1, 2) @ hidden / owner.sum(1)[:, :, None].clamp(min=1)
        lengths = torch.tensor([len(words) for words in sentences])
        mask = torch.arange(longest + 1)[None] <= lengths[:, None]
        return self.dropout(x), mask


def train(gold: Sequence[Sentence], *, epochs: int, seed: int) -> TreeTeacher:
    """Fine-tune on gold sentences: AdamW, the transformer at 1e-4, the rest at 1.5e-3, falling in a line to 0."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    relations = sorted({name for sentence in gold for name in sentence.relations if name})
    number = {name: i for i, name in enumerate(relations)}
    teacher = TreeTeacher(relations)
    encoder = list(teacher.encoder.parameters())
    inside = {id(p) for p in encoder}
    rest = [p for p in teacher.parameters() if id(p) not in inside]
    optimiser = torch.optim.AdamW(
        [{"params": encoder, "lr": 1e-4}, {"params": rest, "lr": 1.5e-3}], weight_decay=0.01
    )
    steps = epochs * len(_batches(gold, rng))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1.0, step / 150) * max(0.0, 1 - step / steps)
    )
    teacher.train()
    for epoch in range(epochs):
        for batch in track(_batches(gold, rng), f"teacher, epoch {epoch + 1}"):
            x, arcs = teacher([sentence.words for sentence in batch])
            heads = torch.full(x.shape[:2], UNKNOWN)
            names = torch.full(x.shape[:2], UNKNOWN)
            for row, sentence in enumerate(batch):
                span = slice(1, len(sentence.words) + 1)
                heads[row, span] = torch.tensor(sentence.heads)
                names[row, span] = torch.tensor(
                    [number.get(r, UNKNOWN) for r in sentence.relations]
                )
            scores = teacher.relation_scores(x, heads.clamp(min=0))
            loss = functional.cross_entropy(
                arcs.flatten(0, 1), heads.flatten(), ignore_index=UNKNOWN
            ) + functional.cross_entropy(
                scores.flatten(0, 1), names.flatten(), ignore_index=UNKNOWN
            )
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(teacher.parameters(), 1.0)
            optimiser.step()
            schedule.step()
    return teacher.eval()


def load_or_train(gold: Sequence[Sentence], file: Path, *, seed: int) -> TreeTeacher:
    """The teacher of `file`, trained and written there first if need be."""
    if not file.exists():
        teacher = train(gold, epochs=EPOCHS, seed=seed)
        checkpoint.save(file, {"relations": [*teacher.relations], "weights": teacher.state_dict()})
    state = checkpoint.load(file)
    teacher = TreeTeacher(state["relations"])
    teacher.load_state_dict(state["weights"])
    return teacher.eval()


def annotate(teacher: TreeTeacher, nlp: Language, texts: Sequence[str]) -> Iterator[Doc]:
    """Texts with the tree the teacher gives each. A text is left out whose best heads are no tree of one root.

    The best head is taken word by word; over nine texts in ten that is a tree, and no cycle has to be broken.
    """
    docs = [nlp.make_doc(text) for text in texts]
    docs = [doc for doc in docs if len(doc) and not any(token.is_space for token in doc)]
    docs.sort(key=len)
    for start in track(range(0, len(docs), 32), "writing trees"):
        group = docs[start : start + 32]
        with torch.inference_mode():
            x, arcs = teacher([[token.text for token in doc] for doc in group])
            heads = arcs.argmax(-1)
            names = teacher.relation_scores(x, heads).argmax(-1)
        for doc, governors, relations in zip(
            group, heads[:, 1:].numpy(), names[:, 1:], strict=True
        ):
            governors = governors[: len(doc)]
            if (governors == 0).sum() != 1:
                continue
            own = np.where(governors == 0, np.arange(len(doc)), governors - 1)
            try:
                check_heads(own)
            except ValueError:
                continue
            yield Doc(
                doc.vocab,
                words=[token.text for token in doc],
                spaces=[bool(token.whitespace_) for token in doc],
                heads=own.tolist(),
                deps=[teacher.relations[name] for name in relations[: len(doc)].tolist()],
            )


def _batches(sentences: Sequence[Sentence], rng: random.Random) -> list[list[Sentence]]:
    """Batches of about `TOKENS_A_BATCH` words, of like lengths, in random order."""
    order = rng.sample(sentences, len(sentences))
    batches: list[list[Sentence]] = []
    for start in range(0, len(order), 1280):
        batch: list[Sentence] = []
        for sentence in sorted(order[start : start + 1280], key=lambda one: len(one.words)):
            if batch and (len(batch) + 1) * len(sentence.words) > TOKENS_A_BATCH:
                batches.append(batch)
                batch = []
            batch.append(sentence)
        batches.append(batch)
    rng.shuffle(batches)
    return batches
