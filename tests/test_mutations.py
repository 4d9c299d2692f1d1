"""Generated kernels, broken on purpose one place at a time: the twin's checker must notice.

Every deletion of a barrier, of a flag pair or of a meeting of all cores that goes unnoticed is of synchronisation that
the kernel does not need, or of a place that no launch gets to: `insert-sync` should not have put it there, or the launches
are too few. Other faults count as found too if the result changes; those that do not are listed, with the reason.
"""

import functools
import re

import mutation_subjects
import mutation_subjects_moe  # noqa: F401: registers its subjects
import mutation_subjects_rows  # noqa: F401
import mutations
import pytest

SUBJECTS = mutation_subjects.SUBJECTS
SHORT = ("filter_by_p", "gating_by_softmax", "meeting")  # for `make test`

# Why faults of data need not show: the subject, what the mutant is called, members without their underscore, and the reason.
UNSEEN = [
    (r"routing_.*codes|routing_of_any_number|gating_and_routing_of_(many|a_range|all|any_number)",
     r"count: .*tablesLocal, countsGm", "the last lanes of a table of counts are no experts, or none that is active"),
    (r"routing_of_any_number", r"length: .*tablesLocal, countsGm", "no core has the table behind the last one"),
    (r"routing_|gating_and_routing_of_all", r"length: .*(ids|ranks)Local2?\b.*expertIdxGm|length: .*ranksGm",
     "lanes behind the pairs of a block are in no unit"),
    (r"sampler", r"length: .*qLocal\d?, qGm", "scores of lanes behind the survivors are masked"),
    (r"rotary_embedding", r"length: .*xLocal\[otherSlot \* 64\], xGm", "what is loaded behind half of a row is stored nowhere"),
    (r"norm_of_rows_on_950", r"overlap: rampLocal where weightLocal", "what is summed of lanes behind a row is 0 already"),
    (r"gating_(by_table|and_routing_of_many)_on_950", r"overlap: startsLocal where filledUpLocal",
     "the one row of a batch starts at 0, and it is filled up with 0"),
    (r"gating_and_routing_of_any_number_on_950", r"overlap: zerosLocal where placeLocal",
     "the mask that is written over them is next to nothing as numbers, and other lanes are no experts"),
    (r"gating_and_routing_of_few", r"overlap: laneNumberLocal where indicesLocal",
     "the first core, which has codes of all tokens, copies those of others too"),
    (r"sampler_long|filter_long|filter_sample_long", r"count: .*allFactsLocal", "of each core's eight facts the first is taken"),
    (r"filter_long_by_k", r"overlap: factsLocal where partialSumsLocal",
     "of what the parts of a row say only the NaNs matter where there is no top-p"),
    (r"filter_long_by_k", r"count: .*, listsOfRowGm\[list\]",
     "how many are above the k-th only says whether it is the k-th for all NaNs"),
    (r"filter_long|filter_sample_long", r"length: .*listed(Raw)?Local.*, listsOfRowGm\[list\]",
     "the second chunk of a long list overwrites what is too much"),
    (r"filter_long|filter_sample_long", r"count: .*CopyIn\(listedRawLocal, listsOfRowGm\[list\]",
     "the first element of the last block fills it up, and in a list of more than a tile by then all are equal"),
    (r"filter_(sample_)?long", r"overlap: (unseenLocal where upperSumsLocal|mostLocal where sumsBeforeLocal|"
     r"blockSumsLocal where beforeTooLocal)", "a sample says where a search begins, not where it ends"),
    (r"filter_long_on_950", r"overlap: (countsLocal where reachesLocal|(sampleSums|least)Local where foundLocal|"
     r"sampleWeightsLocal where sampleSquaresLocal|spreadLocal where (unseen|spreadToo)Local|"
     r"spreadTooLocal where spreadLocal)", "these are of the sample too; on 910B a barrier is missing then"),
    (r"filter_sample_long", r"overlap: isAtMostLocal where foldedLocal|count: .*CopyInPadded\((q|listedRaw)Local2?, |"
     r"length: .*CopyInPadded\(listedRawLocal3, listsOfRowGm\[list2\]",
     "of a row one drawn index is seen; filter_long, which searches alike, shows its thresholds"),
    (r"filter_sample_long_by_key", r"overlap: isElementLocal where word0Local2",
     "where they are read, which scores are numbers lies there: all, and lanes behind the survivors weigh nothing"),
    (r"filter_long|filter_sample_long", r"address: equalCountsLocal",
     "a reduction may write to any element, and nothing is behind these"),
    (r"filter_of_sorted.*_on_950", r"overlap: isBehindLocal\d? where isBeforeLocal",
     "what is in front of a stretch of the result is at none of its places"),
    (r"filter_of_sorted_on_950", r"overlap: spread(Too)?Local\d? where (runningSums|spread)",
     "a row of one piece has one sum, up to whatever piece"),
]  # fmt: skip


def is_explained(name, mutant):
    text = re.sub(r"(\w)_\b", r"\1", str(mutant))
    return any(re.match(subject, name) and re.match(fault, text) for subject, fault, _ in UNSEEN)


@functools.cache
def laboratory(name, directory):
    return mutations.Laboratory(SUBJECTS[name](), directory / name, mutation_subjects.target_of(name))


@pytest.fixture(scope="session")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("mutants")


def unnoticed(lab, mutants):
    return [mutant for mutant in mutants if not lab.is_found(mutant)]


def names():
    return [pytest.param(name, marks=[] if name in SHORT else [pytest.mark.long]) for name in SUBJECTS]


@pytest.mark.parametrize("name", names())
def test_the_kernel_itself_is_sound(name, directory):
    lab = laboratory(name, directory)
    assert lab.findings == []
    deleted = {line for mutant in lab.mutants if mutant.kind in mutations.DELETIONS for line in mutant.lines}
    lines = lab.subject.source.splitlines()
    orders = {i + 1 for i, line in enumerate(lines) if re.match(r"\s*(SetFlag|WaitFlag|PipeBarrier|SyncAll)\b", line)}
    assert {lines[i - 1].strip() for i in orders - deleted} == {"PipeBarrier<PIPE_ALL>();"} and not deleted - orders
    assert sum("PIPE_ALL" in line for line in lines) == 1


KINDS = ["flag", "barrier", *mutations.VARIATIONS, "event-id", "address", "count", "length", "overlap"]


@pytest.mark.parametrize("kind", KINDS)
def test_some_faults_of_every_kind_are_found(kind, directory):
    """Spread over a kernel; the long tests try all, of all kernels."""
    lab = laboratory("filter_by_p", directory)
    mutants = [mutant for mutant in lab.mutants if mutant.kind == kind]
    assert not unnoticed(lab, mutants[:: max(1, len(mutants) // 6)])


def test_every_fault_where_cores_meet_is_found(directory):
    lab = laboratory("meeting", directory)
    assert {"flag", "sync-all"} <= {mutant.kind for mutant in lab.mutants}
    assert not unnoticed(lab, lab.mutants)


@pytest.mark.long
@pytest.mark.parametrize("name", SUBJECTS)
def test_every_missing_synchronisation_is_found(name, directory):
    lab = laboratory(name, directory)
    deletions = [mutant for mutant in lab.mutants if mutant.kind in mutations.DELETIONS]
    left = [f"{'reached' if lab.is_reached(m) else 'not reached'}: {m}" for m in unnoticed(lab, deletions)]
    assert not left, "\n".join(left)


@pytest.mark.long
@pytest.mark.parametrize("name", SUBJECTS)
def test_every_other_fault_is_found_or_explained(name, directory):
    lab = laboratory(name, directory)
    others = [mutant for mutant in lab.mutants if mutant.kind not in mutations.DELETIONS]
    varied = [mutant for mutant in others if mutant.kind in mutations.VARIATIONS]
    others = [mutant for mutant in others if mutant not in varied] + varied[:: max(1, len(varied) // 80)]
    left = [str(mutant) for mutant in unnoticed(lab, others) if not is_explained(name, mutant)]
    assert not left, "\n".join(left)
