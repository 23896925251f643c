"""optimum-intel: a classifier, features, and generation by greedy search, beams and sampling."""

import torch
from optimum.intel import OVModelForCausalLM, OVModelForFeatureExtraction, OVModelForSequenceClassification

IDS = torch.tensor([[5, 7, 9, 11, 13, 2], [3, 4, 6, 8, 1, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1]])


def outputs(folder):
    arrays = {}
    model = OVModelForSequenceClassification.from_pretrained(folder / "classifier")
    arrays["logits"] = model(input_ids=IDS, attention_mask=MASK, token_type_ids=torch.zeros_like(IDS)).logits
    model = OVModelForFeatureExtraction.from_pretrained(folder / "features")
    arrays["features"] = model(input_ids=IDS, attention_mask=MASK).last_hidden_state
    model = OVModelForCausalLM.from_pretrained(folder / "llama")
    one, mask = IDS[:1], MASK[:1]
    arrays["causal"] = model(input_ids=one, attention_mask=mask).logits
    arrays["greedy"] = model.generate(one, attention_mask=mask, max_new_tokens=24, do_sample=False)
    arrays["beams"] = model.generate(one, attention_mask=mask, max_new_tokens=16, num_beams=3, do_sample=False)
    arrays["batch"] = model.generate(IDS, attention_mask=MASK, max_new_tokens=12, do_sample=False)
    torch.manual_seed(7)
    arrays["sampled"] = model.generate(one, attention_mask=mask, max_new_tokens=16, do_sample=True, top_k=20)
    return {name: tensor.numpy() for name, tensor in arrays.items()}
