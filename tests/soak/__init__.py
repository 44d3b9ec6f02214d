"""Hours of misbehaving servers, kills and floods, with each answer compared to the truth.

`make soak` runs it: `world` is the truth, `faults` what goes wrong,
`process` starts and measures the scaler, `run` plays it all, `report` judges.
"""
