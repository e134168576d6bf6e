"""The bench: one topic, replicated by Anabranch and by MirrorMaker 2 on the same embedded brokers, measured alike.

    commands    the command line: one file for each subcommand
    profiles    what a race is run over
    load        produces the topic
    plant       writes one-record batches into a stopped broker's log segments, millions in seconds
    topics      makes and removes topics
    segments    reads the brokers' log segments: what is there, record for record, without asking a broker
    procs       CPU seconds and memory of a process and all that it starts
    competitor  what a competitor is, and the scene that it is given
    ours        Anabranch as a competitor: its own command line, as a user runs it
    mm2         MirrorMaker 2 as a competitor: dedicated mode, tuned
    follower    Kafka's own follower as a competitor: the floor
    watch       follows a competitor from its start to the last replicated record
    sample      compares a sample of a copy with its original; a difference voids a run
    race        the whole: brokers, load, competitors in turn, clean-up
    probe       sends records at a steady rate and receives them, by one clock
    latency     what a replicator adds to the way of a record
    soak        whether memory stays flat while it works for an hour
    padding     how long the copy of a log that starts far from 0 takes to start there
    machine     facts about the machine, for the reports
    report      a race's figures, medians and ratios as Markdown
    latency_report, soak_report  the same for these
    bars        what is promised beside what was measured
    table       Markdown tables

`python -m bench --help` lists the subcommands. Nothing of the product imports it.
"""
