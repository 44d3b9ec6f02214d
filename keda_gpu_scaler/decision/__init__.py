"""TriggerSpec + snapshot → value, activity, state, and the reason in one sentence. Pure."""
