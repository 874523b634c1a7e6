"""Device sockets: the XiaoZhi wire, provisioning, playback and control. Opens no database."""
