import copy
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_world.rollouts.whole import WholeValues

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)
changes = st.lists(st.tuples(st.integers(0, 5), st.none() | st.tuples(values)), max_size=12)


@settings(max_examples=40, deadline=None)
@given(changes=changes, memory_bytes=st.sampled_from([1, 40, 1 << 20]))
def test_it_holds_what_a_dict_would_whether_in_memory_or_in_a_file(changes, memory_bytes):
    kept, plain = WholeValues(memory_bytes=memory_bytes), {}
    for index, value in changes:
        for each in (kept, plain):
            if value is None:
                each.pop(index, None)
            else:
                each[index] = value[0]
        assert kept == plain and list(kept) == list(plain)
    for again in (pickle.loads(pickle.dumps(kept)), copy.deepcopy(kept), WholeValues(plain)):
        assert again == plain


def test_what_is_not_there_is_a_key_error():
    with pytest.raises(KeyError):
        WholeValues({3: "x"})[2]
