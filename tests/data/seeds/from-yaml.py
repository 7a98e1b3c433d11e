from benchflow.trial_yaml import trial_config_from_yaml
config = trial_config_from_yaml("trial.yaml")
result = await bf.run(config)
