"""The libraries that a policy needs, imported: for a process that others are forked from. They take seconds."""

import torch  # noqa: F401, TID253 - whoever imports this module wants just that
from transformers import (  # noqa: F401, TID253
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)
