import {
  type Arg,
  change,
  danger,
  type Finding,
  type Handler,
  type Invocation,
  parseOptions,
  pathsOf,
  valuesOf,
  writeTo,
} from './invocation.js';
import { asks, asksTool, wordsOf } from './steering-files.js';

/** Programs that act on the machine or on other users whatever they are told, and why. */
const always: Readonly<Record<string, string>> = {
  'sudo sudoedit su doas pkexec run0 runuser sg newgrp gosu chpst setuidgid s6-setuidgid su-exec calife dzdo please machinectl kdesu gksudo gksu visudo vipw':
    'takes the rights of another user',
  'login agetty': 'takes the rights of another user',
  'keytool certutil update-ca-certificates update-ca-trust trust': 'changes which keys and servers are believed',
  'consul nomad': 'changes what runs elsewhere',
  'passwd chpasswd chsh chfn chage useradd usermod userdel adduser deluser groupadd groupmod groupdel gpasswd groupmems grpck pwck chgpasswd newusers realm net smbpasswd pdbedit htpasswd samba-tool ldappasswd pwconv grpconv dscl dseditgroup sysadminctl faillock':
    'changes accounts',
  'insmod modprobe rmmod depmod kmod kexec bpftool kldload kldunload kextload kextunload kmutil dkms mokutil':
    'changes the kernel',
  'mount umount mount.cifs mount.nfs sshfs swapon swapoff losetup cryptsetup dmsetup mdadm zpool zfs btrfs lvremove vgremove pvremove lvcreate lvextend fusermount pivot_root hdiutil':
    'changes what is mounted',
  'mkfs mke2fs mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.vfat mkfs.fat mkfs.ntfs mkfs.f2fs mkswap fdisk sfdisk cfdisk gdisk sgdisk parted partprobe wipefs blkdiscard hdparm nvme badblocks fsck e2fsck tune2fs resize2fs xfs_repair debugfs format dislocker ddrescue partclone growpart sfdisk newfs newfs_hfs asr fdformat sg_format sg_sanitize grub-install grub-mkconfig update-grub bless efibootmgr flashrom fwupdmgr':
    'changes disks',
  'service openrc s6-svc sysv-rc-conf initctl rc-service rc-update update-rc.d chkconfig loginctl sv supervisorctl pm2 monit invoke-rc.d':
    'controls services',
  'shutdown reboot halt poweroff init telinit rtcwake pm-suspend pm-hibernate systemd-run swsusp':
    'stops the machine or starts what outlives the call',
  'iptables ip6tables nft ufw firewall-cmd ipset ebtables arptables pfctl tc wg wg-quick openvpn brctl ovs-vsctl arpspoof dhclient dhcpcd vconfig iw wpa_cli wpa_supplicant bluetoothctl netsh ip6addrctl ethtool iwconfig nmcli networksetup rfkill':
    'changes the network',
  'unshare nsenter chroot setpriv capsh bwrap firejail lxc lxc-attach lxc-start lxc-destroy lxd machinectl incus proot systemd-nspawn runc crun ctr crictl fakechroot':
    'changes what a process may see and do',
  'at atrm batch anacron': 'runs something later',
  'dtach abduco byobu zellij daemonize daemon start-stop-daemon': 'starts what outlives the call',
  'pkill killall killall5 xkill skill slay renice oomd earlyoom': 'ends or slows processes',
  'ld.so ld-linux.so.2': 'starts a program through the loader',
  'gdbserver gcore reptyr ptrace bpftrace perf-trace sysdig frida frida-trace dtrace dtruss procdump injector stap trace-cmd systemtap jmap jstack jattach py-spy rbspy criu':
    'reaches into other processes',
  'xclip xsel pbpaste wl-paste xdotool ydotool scrot screencapture grim maim gnome-screenshot spectacle flameshot wtype xwd ffmpeg-record arecord parecord pw-record fswebcam streamer v4l2-ctl imagesnap wl-copy pbcopy gsettings dconf xdg-mime xdg-settings kwriteconfig5 kwriteconfig6 xfconf-query gconftool-2 notify-send zenity kdialog osadecompile plutil PlistBuddy dbus-send gdbus busctl xinput xev':
    'reaches the desktop of the user',
  'stress stress-ng forkbomb bonnie++ iozone hping3 slowloris ab wrk siege': 'uses up the machine',
  'update-alternatives alternatives dpkg-reconfigure pam-auth-update authconfig setenforce semanage restorecon setsebool aa-disable aa-complain aa-teardown aa-enforce apparmor_parser auditctl augenrules auditd chcon fixfiles load_policy selinuxenabled-off setsid-off fscrypt localectl hwclock ntpdate chronyc tzselect csrutil spctl tccutil nvram scutil':
    'changes the settings of the machine',
  'update-initramfs dracut mkinitcpio pmset systemsetup kextcache bputil fdesetup profiles jamf firmwarepasswd tmutil mdutil kmutil grubby tuned-adm tuned powerprofilesctl cpupower setpci i2cset ipmitool racadm smartd hciconfig':
    'changes the settings of the machine',
  'xterm rxvt urxvt konsole gnome-terminal alacritty kitty wezterm foot st terminator xfce4-terminal':
    'opens a terminal of its own',
  'httpd telnetd tftpd ftpd vsftpd proftpd pure-ftpd caddy miniserve darkhttpd thttpd lighttpd webfsd in.telnetd sshd dropbear dnsmasq iodine iodined ptunnel stunnel socat-tunnel gost ghostunnel rathole zrok inlets':
    'serves or tunnels to the network',
  'telegram-send slackcat ntfy gotify imgurbash wput curlftpfs davfs2 gdrive dropbox mega-put mega-cmd megaput skicka':
    'sends away what it is given',
  'wevtutil logrotate utmpdump faillog savelog bleachbit tmpreaper systemd-tmpfiles fwknop': 'tampers with logs',
  'run-parts': 'runs every program of a folder',
  'rdesktop xfreerdp vncserver x11vnc Xvnc teamviewer anydesk rustdesk vncviewer sshuttle rlogin rsh rexec rcp cu minicom':
    'opens a way to or from another machine',
  'restic borg borgmatic duplicity rsnapshot kopia duplicacy bup tarsnap rdiff-backup': 'copies or drops backups',
  'stow chezmoi yadm rcm rcup homeshick': 'changes the settings of the user',
  'wireshark dumpcap ngrep': 'listens to the network',
  xhost: 'opens the desktop to others',
  'vigr pam_tally2 pam_tally': 'changes accounts',
  'systemd-resolve': 'changes the network',
  tmate: 'opens a way to or from another machine',
  'xmrig minerd cpuminer cgminer ethminer': 'mines coins',
  direnv: 'lets a folder set the environment',
  'mise asdf pyenv rbenv nvm fnm volta sdk ghcup': 'installs or switches programs',
  'pspy linenum pwncat wapiti ffuf dirb wfuzz medusa bettercap mitmproxy mitmdump ssldump dsniff driftnet kerbrute bloodhound-python secretsdump.py netexec nxc rustscan zmap nuclei ligolo proxychains-attack aircrack-ng airodump-ng aireplay-ng reaver wifite msfconsole msfvenom sqlmap hydra john hashcat mimikatz linpeas nikto gobuster crackmapexec responder evil-winrm impacket-secretsdump':
    'attacks machines',
};

export const systemHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ...Object.entries(always).flatMap(([names, why]) =>
    names.split(' ').map((name): [string, Handler] => [name, (call) => danger(call, why)]),
  ),
  ['sysctl', sysctl],
  ['systemctl', systemctl],
  [
    'crontab',
    (call) =>
      call.args.length === 1 && call.args[0]?.text === '-l' ? asks(call) : danger(call, 'changes what runs later'),
  ],
  ['atq', (call) => asks(call)],
  ['launchctl', lists(/^(?:list|print|print-disabled|blame|dumpstate|version)$/, 'controls services')],
  ['tmux', lists(/^(?:ls|list-sessions|list-windows|list-panes|lsw|lsp|-V)$/, 'starts what outlives the call')],
  ['screen', lists(/^(?:-ls|-list|-v|--version)$/, 'starts what outlives the call')],
  [
    'defaults',
    (call) =>
      /^(?:read|read-type|domains|find)$/.test(call.args[0]?.text ?? '')
        ? change(call, 'prints settings of programs')
        : danger(call, 'changes settings of programs'),
  ],
  ['ldconfig', lists(/^(?:-p|--print-cache|-V|--version)$/, 'changes the settings of the machine')],
  ['diskutil', lists(/^(?:list|info|apfs list)$/, 'changes disks')],
  ['arp', lists(/^-(?:a|an|n)$/, 'changes the network')],
  ['log', lists(/^(?:show|stats)$/, 'tampers with logs')],
  [
    'xattr',
    (call) =>
      call.args.some(({ text }) => /^-\w*[cdw]/.test(text))
        ? danger(call, 'takes marks off files that say where they come from')
        : asks(call),
  ],
  ['system_profiler', (call) => asks(call)],
  ['getent', getent],
  ['resolvectl', lists(/^(?:status|statistics|--version)$/, 'changes the network')],
  ['rustup', rustup],
  [
    'lastlog',
    (call) =>
      call.args.some(({ text }) => /^-[CS]|^--(?:clear|set)/.test(text))
        ? danger(call, 'tampers with logs')
        : asks(call),
  ],
  [
    'mount',
    (call) =>
      call.args.length === 0 || (call.args[0]?.text === '-l' && call.args.length === 1)
        ? []
        : danger(call, 'changes what is mounted'),
  ],
  ['findmnt', () => []],
  ['blkid', () => []],
  ['ip', ip],
  ['ifconfig', (call) => (call.args.length <= 1 ? [] : danger(call, 'changes the network'))],
  [
    'route',
    (call) => (call.args.every(({ text }) => text.startsWith('-n')) ? [] : danger(call, 'changes the network')),
  ],
  [
    'hostnamectl',
    (call) => (call.args.length === 0 || call.args[0]?.text === 'status' ? [] : danger(call, 'changes the machine')),
  ],
  [
    'timedatectl',
    (call) =>
      call.args.length === 0 || /^(?:status|show|list-timezones|show-timesync)$/.test(call.args[0]?.text ?? '')
        ? []
        : danger(call, 'sets the clock'),
  ],
  [
    'fuser',
    (call) =>
      call.args.some(({ text }) => /^-[a-zA-Z]*k|^--kill/.test(text))
        ? danger(call, 'ends processes')
        : change(call, 'looks who uses a file'),
  ],
  ['top', top],
  ['htop', waits],
  ['btop', waits],
  ['watchman', waits],
  ['inotifywait', waits],
  [
    'ldd',
    (call) =>
      call.args.every(
        (arg) =>
          arg.text.startsWith('-') ||
          (!arg.dynamic && pathsOf(arg.text, call.scan).every((path) => /^\/(?:usr|bin|sbin|lib)/.test(path))),
      )
        ? []
        : change(call, 'may run the program'),
  ],
  ['gdb', (call) => danger(call, 'runs commands of the debugger')],
  ['lldb', (call) => danger(call, 'runs commands of the debugger')],
  [
    'perf',
    (call) =>
      call.args.some(({ text }) => /^-[pa]$|^--(?:pid|all-cpus)/.test(text))
        ? danger(call, 'reaches into other processes')
        : observed(call),
  ],
  [
    'ffmpeg',
    (call) =>
      call.args.some(({ text }) => /x11grab|avfoundation|^https?:|^rtmp|^tcp:|^udp:|concat:|subfile/.test(text))
        ? danger(call, 'reaches the desktop or the network')
        : change(call, 'writes media'),
  ],
  ['nvidia-smi', graphics],
  [
    'nvm',
    (call) =>
      /^(?:ls|list|current|version|which)$/.test(call.args[0]?.text ?? '')
        ? change(call, 'lists versions')
        : danger(call, 'installs or switches programs'),
  ],
]);

const graphicsQuestions = new RegExp(
  `^(?:${[
    '(?:(?:-[LqxuhB]|--(?:help|version|list-gpus|list-excluded-gpus|query|xml-format|dtd|unit|query-[\\w-]+=\\S+)' +
      '|(?:-[di]|--(?:id|display|format))[ =]\\w[\\w,:.-]*)(?: |$))*',
    'topo(?: -[a-z\\d]+| [\\w,:.]+)*',
    'nvlink (?:-[sce]|--(?:status|capabilities|errorcounters))(?: -i \\S+)?',
  ].join('|')})$`,
);

/** nvidia-smi: whatever is no known question sets something of the card. */
function graphics(call: Invocation): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  const files = valuesOf(parseOptions(call.args, '-f --filename'), '-f', '--filename');
  const noted = files.flatMap((arg) => writeTo(arg, call));
  if (noted.length > 0) return [...noted, ...change(call, 'writes a file')];
  if (words.some((text) => /^-l(?:ms)?$|^--loop/.test(text)) || /^[dp]mon$/.test(words[0] ?? '')) return waits(call);
  const known = graphicsQuestions.test(words.join(' '));
  return known ? asks(call) : danger(call, 'changes the settings of the graphics card');
}

function waits(call: Invocation): readonly Finding[] {
  return change(call, 'runs until it is stopped');
}

function sysctl(call: Invocation): readonly Finding[] {
  return call.args.some(({ text }) => text.includes('=') || /^-[a-zA-Z]*[wpf]|^--(?:write|load|system)/.test(text))
    ? danger(call, 'changes the kernel')
    : asks(call);
}

function systemctl(call: Invocation): readonly Finding[] {
  const verb = call.args.find(({ text }) => !text.startsWith('-'))?.text ?? '';
  if (call.args.some(({ text }) => /^-H|^--host|^-M|^--machine|^--root|^--image/.test(text)))
    return danger(call, 'controls another machine');
  return /^(?:status|is-active|is-enabled|is-failed|is-system-running|list-units|list-unit-files|list-timers|list-sockets|list-dependencies|show|cat|get-default|help|)$/.test(
    verb,
  ) && verb !== ''
    ? []
    : verb === ''
      ? asks(call)
      : danger(call, 'controls services');
}

function ip(call: Invocation): readonly Finding[] {
  const words = call.args.map(({ text }) => text).filter((text) => !text.startsWith('-'));
  if (call.args.some(({ text }) => /^--?b(?:a(?:t(?:c(?:h)?)?)?)?$/.test(text)) || words[0] === 'netns')
    return danger(call, 'runs commands of its own');
  return words.length <= 1 || /^(?:show|list|ls|sh|l|lst|get)$/.test(words[1] ?? '')
    ? []
    : danger(call, 'changes the network');
}

/** One question of a program that otherwise acts: the first words say which. */
function lists(questions: RegExp, otherwise: string): Handler {
  return (call) => {
    const two = wordsOf(call.args.slice(0, 2));
    if (call.args.some(({ text }) => text.includes(';'))) return danger(call, otherwise);
    return questions.test(two) || questions.test(call.args[0]?.text ?? '') ? asks(call) : danger(call, otherwise);
  };
}

function rustup(call: Invocation): readonly Finding[] {
  const questions = /^(?:show|which|--version|-V|toolchain list|target list|component list|check)$/;
  const asked = lists(questions, 'installs or switches programs')(call);
  return asked.length > 0 ? asked : asksTool(call);
}

/** `perf stat command`, `perf record command`. */
function observed(call: Invocation): readonly Finding[] {
  const verb = call.args[0]?.text ?? '';
  const at = call.args.findIndex(
    ({ text }, index) =>
      index > 0 && !text.startsWith('-') && !/^-(?:e|o|F|c|g|r|d|I)$/.test(call.args[index - 1]?.text ?? ''),
  );
  return [
    ...(/^(?:stat|record|trace|mem|c2c|lock|kmem)$/.test(verb) && at > 0 ? call.argv(call.args.slice(at)) : []),
    ...change(call, 'observes programs'),
  ];
}

function top(call: Invocation): readonly Finding[] {
  const text = wordsOf(call.args);
  return (/(?:^|\s)-\w*b/.test(text) && /(?:^|\s)-\w*n ?\d+/.test(text)) || /(?:^|\s)-l ?\d+/.test(text)
    ? asks(call)
    : waits(call);
}

function getent(call: Invocation): readonly Finding[] {
  const database = call.args.find(({ text }) => !text.startsWith('-'))?.text ?? '';
  if (/shadow/.test(database)) return danger(call, 'prints hashes of passwords');
  if (call.place.piped || call.args.some((arg) => arg.dynamic))
    return danger(call, 'carries the output of a command away in a name');
  return /^(?:passwd|group|services|protocols|networks|rpc|initgroups)$/.test(database) ||
    (/^a?hosts(?:v[46])?$/.test(database) && /^(?:localhost|[\w-]+)?$/.test(call.args[1]?.text ?? ''))
    ? []
    : change(call, 'uses the network');
}

export const mediaHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['identify', looks(/^-(?:verbose|ping|format|quiet)$/)],
  ['exiftool', exif],
  ['exiftran', (call) => change(call, 'edits pictures')],
  ['exiv2', looks(/^-(?:s+|S|j|json|G\d?|a|u|n|ver|csv|h|t|T|d)$/)],
  [
    'ffprobe',
    looks(
      /^-(?:v|loglevel|hide_banner|show_\w+|of|print_format|output_format|select_streams|i|pretty|count_frames|sexagesimal|unit)$/,
    ),
  ],
  ['mediainfo', looks(/^--(?:Output=\w+|Full|Version)$|^-f$/)],
  ['pdfinfo', looks(/^-(?:box|meta|js|isodates|f|l|enc|v)$/)],
  ['pdffonts', looks(/^-(?:f|l)$/)],
  ['soxi', looks(/^-[a-zA-Z]$/)],
  ['pdftotext', pdfText],
  ['import', (call) => danger(call, 'takes a picture of the screen')],
]);

const exifLooks = looks(
  /^-(?:s+|S|j|json|G\d?|a|u|n|ver|csv|h|t|T|d|r|Model|Make|DateTimeOriginal|CreateDate|ImageSize|ImageWidth|ImageHeight|GPS(?:Latitude|Longitude|Position)|Orientation|FileType|MIMEType|Title|Author|Artist|Copyright|FileSize|ISO|Software)$/,
);

/** A condition or a format of exiftool is code, and `-FileName=` moves the file. */
function exif(call: Invocation): readonly Finding[] {
  return call.args.some(({ text }) =>
    /^-(?:if\d*|config|execute|@|p|printFormat|stay_open|(?:filename|directory|testname|hardlink|symlink)[<=].*)$/i.test(
      text,
    ),
  )
    ? danger(call, 'runs code or moves files')
    : exifLooks(call);
}

const plainFile = /^[^:|@=%]+$/;

/** A program that shows what a file is, with options that only choose what is shown and operands that are plain
 * files. */
function looks(harmless: RegExp): Handler {
  return (call) =>
    call.args.every((arg, index) =>
      arg.text.startsWith('-') ? harmless.test(arg.text) : plainFile.test(arg.text) || isFormat(call.args[index - 1]),
    )
      ? asks(call)
      : change(call, 'is not known to only read');
}

function isFormat(before: Arg | undefined): boolean {
  return before !== undefined && /^-(?:format|show_entries|select_streams|of|print_format|d)$/.test(before.text);
}

function pdfText(call: Invocation): readonly Finding[] {
  return call.args.at(-1)?.text === '-' &&
    call.args.slice(0, -1).every(({ text }) => /^-(?:layout|raw|f|l|enc|nopgbrk|q)$/.test(text) || plainFile.test(text))
    ? asks(call)
    : change(call, 'writes a file of text');
}

const compilers = [
  'gcc',
  'g++',
  'cc',
  'c++',
  'clang',
  'clang++',
  'cpp',
  'gfortran',
  'tcc',
  'ld',
  'ld.lld',
  'ld.gold',
  'lld',
  'nvcc',
  'icc',
];

export const compilerHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ...compilers.map((name): [string, Handler] => [name, compiler]),
  ['cmake', cmake],
  ['rustc', rustc],
]);

/** Options by which a compiler starts or loads a program of choice. */
const loads =
  /^(?:-wrapper|-B.*|-specs(?:=.*)?|--specs(?:=.*)?|-f(?:pass-)?plugin\b.*|-?-plugin(?:=.*)?|-load|-fuse-ld=.*\/.*|--ld-path.*|-ccbin.*|-I-)$/;
const questions =
  /^(?:--version|-v|-dumpversion|-dumpfullversion|-dumpmachine|-dumpspecs|--help|-print-\S+|--print-\S+|-Q|-###)$/;

function compiler(call: Invocation): readonly Finding[] {
  if (call.args.some(({ text }) => loads.test(text))) return danger(call, 'starts or loads a program of choice');
  if (call.args.length > 0 && call.args.every(({ text }) => questions.test(text))) return asks(call);
  return [
    ...valuesOf(parseOptions(call.args, '-o -I -L -D -l -x -include -isystem -std'), '-o').flatMap((arg) =>
      writeTo(arg, call),
    ),
    ...change(call, 'builds programs'),
  ];
}

/** `cmake -E` is a set of tools: it deletes, copies and runs. */
function cmake(call: Invocation): readonly Finding[] {
  const at = call.args.findIndex(({ text }) => text === '-E');
  if (at < 0)
    return call.args.some(({ text }) => /^(?:install|--install)$/.test(text))
      ? danger(call, 'installs programs')
      : change(call, 'builds and runs project code');
  const [tool, ...rest] = call.args.slice(at + 1);
  const inner = tools[tool?.text ?? ''];
  if (inner && tool) return call.argv([{ ...tool, text: inner, values: [inner] }, ...rest]);
  return /^(?:remove_directory|rm|remove)$/.test(tool?.text ?? '')
    ? danger(call, 'deletes files')
    : change(call, 'works on files');
}

const tools: Readonly<Record<string, string>> = {
  env: 'env',
  cat: 'cat',
  echo: 'echo',
  rm: 'rm',
  copy: 'cp',
  copy_directory: 'cp',
  rename: 'mv',
  touch: 'touch',
  make_directory: 'mkdir',
  create_symlink: 'ln',
  tar: 'tar',
  time: 'time',
  sleep: 'sleep',
};

function rustc(call: Invocation): readonly Finding[] {
  if (call.args.some(({ text }) => /linker=|^-Z|load-plugins/.test(text)))
    return danger(call, 'starts or loads a program of choice');
  return call.args.length > 0 &&
    call.args.every(({ text }) =>
      /^(?:--version|-V|-vV|--verbose|-v|--print(?:=\S+)?|sysroot|cfg|target-list|host-tuple|--explain|E\d+)$/.test(
        text,
      ),
    )
    ? asksTool(call)
    : change(call, 'builds programs');
}
