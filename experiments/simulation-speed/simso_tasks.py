"""Ten tasks under EDF in SimSo: prints the CPU time of the simulation, and writes how many jobs it did.

usage: simso_tasks.py SECONDS JOBS_FILE
"""

import sys
import time

from simso.configuration import Configuration
from simso.core import Model


def main():
    seconds, jobs_file = int(sys.argv[1]), sys.argv[2]
    configuration = Configuration()
    configuration.duration = seconds * 1000 * configuration.cycles_per_ms
    for number in range(10):
        period_ms = 5 + 0.997 * number
        configuration.add_task(
            name=f"t{number}",
            identifier=number + 1,
            period=period_ms,
            activation_date=0,
            wcet=period_ms * 0.07,
            deadline=period_ms,
        )
    configuration.add_processor(name="CPU", identifier=1)
    configuration.scheduler_info.clas = "simso.schedulers.EDF_mono"
    configuration.check_all()
    model = Model(configuration)
    began = time.process_time()
    model.run_model()
    print(time.process_time() - began)
    done = sum(
        sum(1 for job in task.jobs if job.end_date is not None)
        for task in model.results.tasks.values()
    )
    with open(jobs_file, "w", encoding="ascii") as file:
        file.write(f"{done}\n")


if __name__ == "__main__":
    main()
