from benchflow.job import Job, JobConfig, RetryConfig
config = JobConfig(
retry=RetryConfig(
max_retries=2,
wait_multiplier=2.0,
min_wait_sec=1.0,
max_wait_sec=30.0,
),
)
