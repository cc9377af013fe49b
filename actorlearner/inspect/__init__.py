"""Looking at a run or a machine: status, bottleneck, plot, report and doctor."""
