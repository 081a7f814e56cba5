"""The paper ledger: memory, compute, time and cost before anything is launched.

Bytes, seconds, tokens and FLOPs throughout; GiB is 2^30. Every function raises `InputError` for input that
can't be, with the nearest valid value. Each module's docstring names the source of its formulas.

- `catalogue`     the models and devices that ship; `hf_config` reads any other `config.json`
- `architecture`  a model as blocks, exact parameter counts (`mixers`, `mlps`, `deepseek_v4` are its parts)
- `devices`       dense peaks, bandwidth, memory, each with its origin; `room` is what a device leaves
- `methods`       full, LoRA, QLoRA; optimizer, recomputation, loss; the batch
- `setup`         one configuration; `memory.estimate(setup, device)` predicts every stage with a band
- `flops`, `mfu`  FLOPs per token and utilisation, each convention by its name
- `steptime`      step time from a band, from probes; `cost` adds it up to wall-clock, days and money
- `paper`         the paper column of a configuration; `columns` sets paper, probed and measured side by side
- `choose`        ranks a table under a limit; `feasible` ranks all cuts of a model; `scenario` advises
- `classic`       the course's 16 bytes per parameter
- `bands`         how far each kind of prediction can be trusted, and why
"""
